#include "cli/reports/conversation.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/ordered_json.h"
#include "fovea/error.h"
#include "terminal/read_text.h"

namespace fovea::cli {
namespace {

using Json = nlohmann::ordered_json;

constexpr size_t kFileBytes = 16 << 20;  // longer than any context

ChatMessage message_of(const Json& json, const std::string& place) {
  const auto text = [&](const char* key) {
    const auto found = json.is_object() ? json.find(key) : json.end();
    if (!json.is_object() || found == json.end() || !found->is_string())
      throw Error(ErrorKind::BadFile,
                  fmt::format("{}: no {}; expected texts \"role\" and \"content\"", place, key));
    return found->get<std::string>();
  };
  ChatMessage message = {text("role"), text("content")};
  for (const char* role : {"system", "user", "assistant"})
    if (message.role == role) return message;
  throw Error(ErrorKind::BadFile, fmt::format("{}: role \"{}\"; expected system, user or assistant",
                                              place, message.role));
}

}  // namespace

Conversation::Conversation(const Model& model, ChatFormat format, std::string system)
    : model_(model), format_(std::move(format)) {
  if (!system.empty()) say("system", std::move(system));
}

void Conversation::say(const char* role, std::string text) {
  messages_.push_back({role, std::move(text)});
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
  const Json file = parse_ordered_json(read_text(path, kFileBytes), path);
  if (!file.is_object() || !file.contains("messages") || !file["messages"].is_array())
    throw Error(ErrorKind::BadFile,
                path + ": no messages; expected {\"messages\": [...]}, as /save writes it");
  std::vector<ChatMessage> messages;
  for (const Json& each : file["messages"])
    messages.push_back(message_of(each, fmt::format("{}: messages[{}]", path, messages.size())));
  messages_ = std::move(messages);
}

std::string Conversation::as_json() const { return messages_json(messages_); }

std::vector<int32_t> Conversation::encoded() const {
  ChatRequest request;
  request.messages = as_json();
  const Tokenizer& tokenizer = model_.tokenizer();
  return tokenizer.encode(format_.render(guarded(request, tokenizer)), SpecialTokens::guarded);
}

Conversation::Prompt Conversation::prompt() {
  const int64_t context = model_.spec().context;
  if (model_.spec().encoder) return {encoded(), context - 1};
  // With less room the answer would often be cut off in its first sentence.
  const int64_t least_room = std::clamp<int64_t>(context / 4, 1, 256);
  Prompt prompt{encoded()};
  while (context - std::ssize(prompt.ids) < least_room) {
    const auto oldest = messages_.begin() + (has_system() ? 1 : 0);
    // A conversation must begin with a question, and the last question must stay.
    auto next = std::find_if(std::min(oldest + 1, messages_.end()), messages_.end(),
                             [](const auto& message) { return message.role == "user"; });
    if (next == messages_.end()) {
      if (context > std::ssize(prompt.ids)) break;
      throw Error(ErrorKind::InvalidArgument,
                  fmt::format("message: too long: {} tokens with the chat template; expected fewer "
                              "than {}, the model's context",
                              prompt.ids.size(), context));
    }
    prompt.dropped += next - oldest;
    messages_.erase(oldest, next);
    prompt.ids = encoded();
  }
  prompt.room = context - std::ssize(prompt.ids);
  return prompt;
}

}  // namespace fovea::cli
