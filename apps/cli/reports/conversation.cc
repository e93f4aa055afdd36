#include "cli/reports/conversation.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/ordered_json.h"
#include "fovea/core/error.h"
#include "fovea/text/text_lines.h"

namespace fovea::cli {
namespace {

using Json = nlohmann::ordered_json;

constexpr size_t kFileBytes = 16 << 20;  // longer than any context

// Returns the message as templates read it: a question about images has a list of parts.
text::ChatValue value_of(const Conversation::Message& message) {
  using text::ChatValue;
  if (message.images.empty()) return text::chat_message(message.role, message.content);
  std::vector<ChatValue> parts;
  for (const std::string& path : message.images)
    parts.push_back(ChatValue::object({{"type", "image"}, {"path", path}}));
  parts.push_back(ChatValue::object({{"type", "text"}, {"text", message.content}}));
  return text::chat_message(message.role, ChatValue::list(parts));
}

std::string text_in(const Json& json, const char* key, const std::string& location) {
  const auto found = json.is_object() ? json.find(key) : json.end();
  if (!json.is_object() || found == json.end() || !found->is_string())
    throw Error(ErrorKind::BadFile,
                fmt::format("{}: no {}; expected texts \"role\" and \"content\"", location, key));
  return found->get<std::string>();
}

// Reads a question whose content is a list of parts.
Conversation::Message question_in(const Json& parts, const std::string& location) {
  std::string text;
  std::vector<std::string> images;
  for (const Json& part : parts) {
    const bool image = part.is_object() && part.value("type", Json()) == "image";
    const std::string value = text_in(part, image ? "path" : "text", location);
    if (image)
      images.push_back(value);
    else
      text += value;
  }
  return {"user", text, images};
}

Conversation::Message message_of(const Json& json, const std::string& location) {
  const std::string role = text_in(json, "role", location);
  if (role == "user" && json.contains("content") && json["content"].is_array())
    return question_in(json["content"], location);
  for (const char* known : {"system", "user", "assistant"})
    if (role == known) return {role, text_in(json, "content", location)};
  throw Error(ErrorKind::BadFile,
              fmt::format("{}: role \"{}\"; expected system, user or assistant", location, role));
}

}  // namespace

Conversation::Conversation(const model::Model& model, text::ChatFormat format, std::string system)
    : model_(model), format_(std::move(format)) {
  if (!system.empty()) say("system", std::move(system));
}

void Conversation::say(const char* role, std::string text) {
  messages_.push_back({role, std::move(text)});
  if (messages_.back().role == "user") messages_.back().images = std::exchange(attached_, {});
}

void Conversation::attach(const std::string& path) {
  infer::image_mark(model_);  // throws if the model reads no images
  media::read_image(path);
  attached_.push_back(path);
}

void Conversation::clear() {
  messages_.erase(messages_.begin() + (has_system() ? 1 : 0), messages_.end());
}

void Conversation::set_system(std::string text) {
  if (has_system()) messages_.erase(messages_.begin());
  if (text.empty()) return;
  messages_.insert(messages_.begin(), {"system", std::move(text)});
}

bool Conversation::take_back(bool question) {
  if (messages_.empty() || messages_.back().role == "system") return false;
  if (messages_.back().role == "assistant") messages_.erase(messages_.end() - 1);
  if (question) messages_.erase(messages_.end() - 1);
  return true;
}

const std::string& Conversation::system() const {
  static const std::string none;
  return has_system() ? messages_[0].content : none;
}

void Conversation::load(const std::string& path) {
  const Json file = parse_ordered_json(text::read_text(path, kFileBytes), path);
  if (!file.is_object() || !file.contains("messages") || !file["messages"].is_array())
    throw Error(ErrorKind::BadFile,
                path + ": no messages; expected {\"messages\": [...]}, as /save writes it");
  std::vector<Message> messages;
  for (const Json& each : file["messages"])
    messages.push_back(message_of(each, fmt::format("{}: messages[{}]", path, messages.size())));
  messages_ = std::move(messages);
}

text::ChatValue Conversation::values() const {
  std::vector<text::ChatValue> all;
  for (const Message& message : messages_) all.push_back(value_of(message));
  return text::ChatValue::list(all);
}

std::string Conversation::as_json() const { return values().json(); }

infer::ImagePrompt Conversation::encoded() const {
  text::ChatRequest request;
  request.messages = values();
  const text::Tokenizer& tokenizer = model_.tokenizer();
  if (!infer::reads_images(model_))
    return {tokenizer.encode(format_.render(text::guarded(request, tokenizer)),
                             text::SpecialTokens::guarded)};
  std::vector<std::string> paths;
  for (const Message& message : messages_)
    paths.insert(paths.end(), message.images.begin(), message.images.end());
  const std::string text =
      text::render_with_images(format_, request, tokenizer, infer::image_mark(model_));
  return infer::image_prompt(
      model_, text, paths.size(), [&](size_t i) { return media::read_image(paths[i]); },
      text::SpecialTokens::guarded, paths);
}

Conversation::Prompt Conversation::prompt() {
  const int64_t context = model_.spec().context;
  if (model_.spec().encoder) return {encoded(), context - 1};
  // With less room the answer would often be cut off in its first sentence.
  const int64_t least_room = std::clamp<int64_t>(context / 4, 1, 256);
  Prompt prompt{encoded()};
  while (context - std::ssize(prompt.tokens.ids) < least_room) {
    const auto oldest = messages_.begin() + (has_system() ? 1 : 0);
    // A conversation must begin with a question, and the last question must stay.
    auto next = std::find_if(std::min(oldest + 1, messages_.end()), messages_.end(),
                             [](const auto& message) { return message.role == "user"; });
    if (next == messages_.end()) {
      if (context > std::ssize(prompt.tokens.ids)) break;
      throw Error(ErrorKind::InvalidArgument,
                  fmt::format("message: too long: {} tokens with the chat template; expected fewer "
                              "than {}, the model's context",
                              prompt.tokens.ids.size(), context));
    }
    prompt.dropped += next - oldest;
    messages_.erase(oldest, next);
    prompt.tokens = encoded();
  }
  prompt.room = context - std::ssize(prompt.tokens.ids);
  return prompt;
}

}  // namespace fovea::cli
