#include "embed/message_format.h"

#include <algorithm>

#include "base/error.h"
#include "base/files.h"
#include "base/json.h"
#include "checkpoint/module_files.h"

namespace fovea::infer {
namespace {

using MessageJson = nlohmann::json;

// Two contents whose tokens differ; the tokens that follow both are those of the template.
constexpr const char *kOneContent = "0", *kOtherContent = "1 2 3 4";

text::ChatValue message_of(const char* role, std::string_view text, bool structured) {
  using text::ChatValue;
  if (!structured) return text::chat_message(role, text);
  return text::chat_message(
      role, ChatValue::list({ChatValue::object({{"type", "text"}, {"text", text}})}));
}

// Returns the value of a key of an object; null if it is missing.
MessageJson part_of_object(const MessageJson& object, const char* key) {
  return object.is_object() ? object.value(key, MessageJson()) : MessageJson();
}

}  // namespace

std::optional<MessageFormat> MessageFormat::open(const std::string& folder,
                                                 const text::Tokenizer& tokenizer) {
  if (!is_folder(folder)) return std::nullopt;  // a .gguf file
  for (const std::string& name : list_files(folder)) {
    if (!model::is_settings_file(name)) continue;
    const std::string file = folder + "/" + name;
    const MessageJson config = read_json(file);
    const MessageJson message =
        part_of_object(part_of_object(config, "modality_config"), "message");
    if (message.is_null()) continue;
    MessageFormat format;
    const MessageJson kind = part_of_object(message, "format");
    if (kind != "flat" && kind != "structured")
      fail(ErrorKind::Unsupported,
           "{}: modality_config.message.format is {}; expected flat or structured", file,
           brief(kind));
    format.structured_ = kind == "structured";
    MessageJson variables =
        part_of_object(part_of_object(config, "processing_kwargs"), "chat_template");
    if (!variables.is_object()) variables = MessageJson::object();
    format.generation_prompt_ = find_bool(variables, "add_generation_prompt", file).value_or(false);
    variables.erase("add_generation_prompt");
    format.variables_ = text::ChatValue::of(variables);
    format.chat_ = text::ModelChat::open(folder);
    static_cast<void>(format.rendered(tokenizer, "", kOneContent));  // the template's errors
    return format;
  }
  return std::nullopt;
}

std::vector<int32_t> MessageFormat::rendered(const text::Tokenizer& tokenizer,
                                             const std::string& prompt,
                                             std::string_view text) const {
  std::vector<text::ChatValue> messages;
  if (!prompt.empty()) messages.push_back(message_of("system", prompt, structured_));
  messages.push_back(message_of("user", text, structured_));
  text::ChatRequest request;
  request.messages = text::ChatValue::list(messages);
  request.variables = variables_;
  request.add_generation_prompt = generation_prompt_;
  return tokenizer.encode(chat_->render(text::guarded(request, tokenizer)).text,
                          text::SpecialTokens::guarded);
}

std::vector<int32_t> MessageFormat::ids(const text::Tokenizer& tokenizer, const std::string& prompt,
                                        std::string_view text, int64_t most, int64_t& cut) const {
  std::vector<int32_t> ids = rendered(tokenizer, prompt, text);
  cut = std::max<int64_t>(std::ssize(ids) - most, 0);
  if (cut == 0) return ids;
  ids.resize(static_cast<size_t>(most));
  const std::vector<int32_t> one = rendered(tokenizer, prompt, kOneContent),
                             other = rendered(tokenizer, prompt, kOtherContent);
  const auto differ = std::mismatch(one.rbegin(), one.rend(), other.rbegin(), other.rend());
  const auto end = std::min<int64_t>(differ.first - one.rbegin(), most);
  std::copy(one.end() - end, one.end(), ids.end() - end);
  return ids;
}

}  // namespace fovea::infer
