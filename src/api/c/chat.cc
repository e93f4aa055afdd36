#include "fovea/text/chat.h"

#include "base/ordered_json.h"
#include "c/handles.h"

using namespace fovea::c;

namespace fovea::c {
namespace {

constexpr auto kChatDefaults = sized<fovea_chat_options>();

// Returns the value of a JSON text; null if there is none.
text::ChatValue value_of(const char* json, const char* name) {
  if (json == nullptr || *json == '\0') return {};
  return text::ChatValue::of(parse_ordered_json(json, name));
}

text::ChatValue message_of(const fovea_message& message) {
  return text::chat_message(required(message.role, "role"),
                            text_of(message.content, message.content_size, "content"),
                            value_of(message.members, "members"));
}

text::ChatRequest request_of(const text::ChatFormat& format, const fovea_message* messages,
                             size_t count, const fovea_chat_options* options) {
  const fovea_chat_options chosen = options_of(options, kChatDefaults);
  // A template would ignore them silently.
  if (chosen.tools != nullptr && !format.knows_tools)
    fail(ErrorKind::Unsupported, "tools: not supported by the chat template; expected none");
  if (chosen.documents != nullptr && !format.knows_documents)
    fail(ErrorKind::Unsupported, "documents: not supported by the chat template; expected none");
  std::vector<text::ChatValue> list;
  for (const fovea_message& message : list_of(messages, count, "messages"))
    list.push_back(message_of(message));
  text::ChatRequest request;
  request.messages = text::ChatValue::list(list);
  request.tools = value_of(chosen.tools, "tools");
  request.documents = value_of(chosen.documents, "documents");
  request.variables = value_of(chosen.variables, "variables");
  request.add_generation_prompt = chosen.no_generation_prompt == 0;
  return request;
}

std::vector<int32_t> encoded(const fovea_chat& chat, const text::ChatRequest& request) {
  const text::Tokenizer& tokenizer = chat.model.tokenizer();
  return tokenizer.encode(chat.format.render(text::guarded(request, tokenizer)),
                          text::SpecialTokens::guarded);
}

// Returns how many tokens fit after the prompt.
int64_t room_after(const std::vector<int32_t>& prompt, const model::Spec& spec) {
  if (spec.encoder) return spec.context - 1;
  check(std::ssize(prompt) < spec.context,
        "messages: {} tokens with the template; expected fewer than {}, the model's context",
        prompt.size(), spec.context);
  return spec.context - std::ssize(prompt);
}

}  // namespace
}  // namespace fovea::c

fovea_status fovea_chat_options_init(fovea_chat_options* options, size_t size) {
  return guard([&] { give(kChatDefaults, size, required(options, "options")); });
}

fovea_status fovea_chat_open(fovea_model* model, const char* template_file, fovea_chat** chat) {
  if (chat != nullptr) *chat = nullptr;
  return guard(model, "model", [&] {
    required(chat, "chat");
    auto format = fovea::text::chat_format(model->path, std::string(or_empty(template_file)),
                                           model->model.tokenizer());
    if (!format)
      fovea::fail(fovea::ErrorKind::Unsupported,
                  "{}: the model has no chat template; expected a chat model, or a template file",
                  model->path);
    *chat = new fovea_chat(model->model, std::move(*format));
  });
}

void fovea_chat_free(fovea_chat* chat) { delete chat; }

const char* fovea_chat_error(const fovea_chat* chat) { return message_of(chat); }

fovea_status fovea_chat_render(fovea_chat* chat, const fovea_message* messages, size_t count,
                               const fovea_chat_options* options, const char** text, size_t* size) {
  return guard(chat, "chat", [&] {
    required(text, "text");
    required(size, "size");
    chat->text = chat->format.render(request_of(chat->format, messages, count, options));
    *text = chat->text.c_str();
    *size = chat->text.size();
  });
}

fovea_status fovea_chat_generate(fovea_chat* chat, const fovea_message* messages, size_t count,
                                 const fovea_chat_options* options,
                                 const fovea_generate_options* generation,
                                 fovea_generation* result) {
  return guard(chat, "chat", [&] {
    const auto prompt = encoded(*chat, request_of(chat->format, messages, count, options));
    generate_into(chat->generated, chat->model, prompt, generation,
                  room_after(prompt, chat->model.spec()), result);
  });
}
