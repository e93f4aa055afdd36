#include "chat/image_messages.h"

#include "base/error.h"
#include "base/float_mode.h"
#include "chat/values.h"
#include "fovea/text/chat.h"
#include "tokenizer/pipeline/decoders.h"

namespace fovea::text {
namespace {

using jinja::Dict, jinja::Kind, jinja::Runtime, jinja::Value;

constexpr std::string_view kGuard = "\xEF\xB7\x90";  // U+FDD0: see Tokenizer::guarded()

// Returns a text of an object; empty if it has no such text.
std::string_view text_of(const Value& object, std::string_view key) {
  const Value* found = object.is(Kind::dict) ? object.dict().find(key) : nullptr;
  return found != nullptr && found->is(Kind::string) ? found->bytes() : std::string_view();
}

bool is_text(const Value& part) {
  return text_of(part, "type") == "text" && part.dict().find("text") != nullptr &&
         part.dict().find("text")->is(Kind::string);
}

ChatValue text_part(std::string_view text) {
  return ChatValue::object({{"type", "text"}, {"text", text}});
}

std::string joined(const jinja::Values& parts) {
  std::string text;
  for (const Value& part : parts) {
    if (text_of(part, "type") == "image") {
      text += std::string(kShownImage) + "\n";
      continue;
    }
    std::string own(text_of(part, "text"));
    replace_all(own, kShownImage, "");
    text += own;
  }
  return text;
}

// Joins texts that follow each other by a line break, since templates join them without one.
jinja::Values with_breaks(const jinja::Values& parts) {
  jinja::Values joined;
  for (const Value& part : parts) {
    if (!joined.empty() && is_text(part) && is_text(joined.back()))
      joined.back() = value_of(text_part(std::string(text_of(joined.back(), "text")) + "\n" +
                                         std::string(text_of(part, "text"))));
    else
      joined.push_back(part);
  }
  return joined;
}

// Returns the content of a message as the template reads it.
Value shown_content(Runtime& runtime, const Value& content, bool knows_parts) {
  if (content.is(Kind::string) && knows_parts)
    return value_of(ChatValue::list({text_part(content.bytes())}));
  if (!is_list(content)) return content;
  jinja::Values parts = with_breaks(content.items());
  return knows_parts ? new_sequence(runtime, std::move(parts)) : Value(joined(parts));
}

}  // namespace

bool knows_parts(const std::string& source) {
  return source.find("'image'") != source.npos || source.find("\"image\"") != source.npos;
}

ChatRequest with_shown_images(const ChatRequest& request, bool as_parts) {
  Runtime runtime = unlimited();
  const Value& messages = value_of(request.messages);
  check(is_list(messages), "messages: not a list; expected a list of objects");
  jinja::Values shown;
  for (const Value& message : messages.items()) {
    check(message.is(Kind::dict), "messages: not objects; expected objects with role and content");
    const auto changed = std::make_shared<Dict>(message.dict());
    if (const Value* content = message.dict().find("content"))
      changed->set(runtime, Value("content"), shown_content(runtime, *content, as_parts));
    shown.emplace_back(std::shared_ptr<const Dict>(changed));
  }
  ChatRequest changed = request;
  changed.messages = chat_value(new_sequence(runtime, std::move(shown)));
  return changed;
}

std::vector<size_t> marks_in(const std::string& text, const std::string& mark) {
  std::vector<size_t> offsets;
  for (size_t at = 0; (at = text.find(mark, at)) != text.npos; at += mark.size())
    if (!std::string_view(text).substr(0, at).ends_with(kGuard)) offsets.push_back(at);
  return offsets;
}

std::string render_with_images(const ChatFormat& format, const ChatRequest& request,
                               const Tokenizer& tokenizer, const std::string& mark) {
  const FloatMode mode;
  std::string text =
      format.render(guarded(with_shown_images(request, format.knows_parts), tokenizer));
  replace_all(text, kShownImage, mark);
  return text;
}

}  // namespace fovea::text
