#include "embed/message_format.h"

#include <algorithm>
#include <array>

#include "base/error.h"
#include "base/files.h"
#include "base/json.h"
#include "checkpoint/module_files.h"

namespace fovea::infer {
namespace {

using MessageJson = nlohmann::json;

// Two contents whose tokens differ; the tokens that follow both are those of the template.
constexpr const char *kOneContent = "0", *kOtherContent = "1 2 3 4";

// The prompt of the authors' code (Zhang et al. 2025, arXiv:2506.05176), which is not in the files
// of their rerankers, as a template.
constexpr const char* kJudge =
    "<|im_start|>system\nJudge whether the Document meets the requirements based on the Query and "
    "the Instruct provided. Note that the answer can only be \"yes\" or \"no\".<|im_end|>\n"
    "<|im_start|>user\n"
    "<Instruct>: {{ messages | selectattr('role', 'eq', 'system') | map(attribute='content') | "
    "first | default('Given a web search query, retrieve relevant passages that answer the query') "
    "}}\n"
    "<Query>: {{ messages | selectattr('role', 'eq', 'query') | map(attribute='content') | first "
    "}}\n"
    "<Document>: {{ messages | selectattr('role', 'eq', 'document') | map(attribute='content') | "
    "first }}<|im_end|>\n"
    "<|im_start|>assistant\n<think>\n\n</think>\n{{ '\\n' }}";

using MessagePair = std::array<MessageText, 2>;
MessagePair pair_of(std::string_view query, std::string_view document) {
  return {{{"query", query}, {"document", document}}};
}

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
    const MessageText one = {"user", kOneContent};
    static_cast<void>(format.rendered(tokenizer, "", {&one, 1}));  // the template's errors
    return format;
  }
  return std::nullopt;
}

MessageFormat MessageFormat::open_for_pairs(const std::string& folder,
                                            const text::Tokenizer& tokenizer) {
  if (auto given = open(folder, tokenizer); given && given->shows_pairs(tokenizer)) return *given;
  MessageFormat format;
  if (text::ModelChat::has_template(folder)) {
    format.chat_ = text::ModelChat::open(folder);
    if (format.shows_pairs(tokenizer)) return format;
  }
  if (!tokenizer.id_of("<|im_start|>") || !tokenizer.id_of("<|im_end|>"))
    fail(ErrorKind::Unsupported,
         "{}: the chat template does not show messages of the roles query and document; expected "
         "one that does, or the tokens <|im_start|> and <|im_end|>",
         folder);
  format.chat_ = text::ModelChat::of_source(kJudge, "template of queries and documents", tokenizer);
  return format;
}

// Whether the text depends on the query and on the document.
bool MessageFormat::shows_pairs(const text::Tokenizer& tokenizer) const {
  const auto read = [&](const char* query, const char* document) {
    return rendered(tokenizer, "", pair_of(query, document));
  };
  try {
    const auto one = read(kOneContent, kOneContent);
    return one != read(kOtherContent, kOneContent) && one != read(kOneContent, kOtherContent);
  } catch (const Error&) {  // the template refuses these roles
    return false;
  }
}

std::vector<int32_t> MessageFormat::rendered(const text::Tokenizer& tokenizer,
                                             const std::string& prompt,
                                             std::span<const MessageText> given) const {
  std::vector<text::ChatValue> messages;
  if (!prompt.empty()) messages.push_back(message_of("system", prompt, structured_));
  for (const MessageText& each : given)
    messages.push_back(message_of(each.role, each.text, structured_));
  text::ChatRequest request;
  request.messages = text::ChatValue::list(messages);
  request.variables = variables_;
  request.add_generation_prompt = generation_prompt_;
  return tokenizer.encode(chat_->render(text::guarded(request, tokenizer)).text,
                          text::SpecialTokens::guarded);
}

std::vector<int32_t> MessageFormat::ids(const text::Tokenizer& tokenizer, const std::string& prompt,
                                        std::span<const MessageText> messages, int64_t most,
                                        int64_t& cut) const {
  std::vector<int32_t> ids = rendered(tokenizer, prompt, messages);
  cut = std::max<int64_t>(std::ssize(ids) - most, 0);
  if (cut == 0) return ids;
  ids.resize(static_cast<size_t>(most));
  const auto with_last = [&](const char* text) {
    std::vector<MessageText> changed(messages.begin(), messages.end());
    changed.back().text = text;
    return rendered(tokenizer, prompt, changed);
  };
  const std::vector<int32_t> one = with_last(kOneContent), other = with_last(kOtherContent);
  const auto differ = std::mismatch(one.rbegin(), one.rend(), other.rbegin(), other.rend());
  const auto end = std::min<int64_t>(differ.first - one.rbegin(), most);
  std::copy(one.end() - end, one.end(), ids.end() - end);
  return ids;
}

}  // namespace fovea::infer
