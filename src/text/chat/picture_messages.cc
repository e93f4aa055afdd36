#include "base/error.h"
#include "base/float_mode.h"
#include "base/ordered_json.h"
#include "fovea/text/chat.h"
#include "tokenizer/pipeline/decoders.h"

namespace fovea::text {
namespace {

using Messages = nlohmann::ordered_json;

// Stands for a picture in texts until special tokens in them are guarded: the noncharacter U+FDD1.
constexpr std::string_view kPicture = "\xEF\xB7\x91";

std::string joined(const Messages& parts) {
  std::string text;
  for (const Messages& part : parts) {
    if (part.value("type", "") == "image") {
      text += std::string(kPicture) + "\n";
      continue;
    }
    std::string own = part.value("text", "");
    replace_all(own, kPicture, "");
    text += own;
  }
  return text;
}

// Joins texts that follow each other by a line break, since templates join them without one.
Messages with_breaks(const Messages& parts) {
  Messages joined = Messages::array();
  const auto is_text = [](const Messages& part) {
    return part.value("type", "") == "text" && part.contains("text") && part["text"].is_string();
  };
  for (const Messages& part : parts) {
    if (!joined.empty() && is_text(part) && is_text(joined.back()))
      joined.back()["text"] =
          joined.back()["text"].get<std::string>() + "\n" + part["text"].get<std::string>();
    else
      joined.push_back(part);
  }
  return joined;
}

}  // namespace

std::string render_with_images(const ChatFormat& format, const ChatRequest& request,
                               const Tokenizer& tokenizer, const std::string& mark) {
  const FloatMode mode;
  Messages messages = parse_ordered_json(request.messages, "messages");
  check(messages.is_array(), "messages: not a list; expected a list of objects");
  for (Messages& message : messages) {
    check(message.is_object(), "messages: not objects; expected objects with role and content");
    const auto content = message.find("content");
    if (content == message.end()) continue;
    if (content->is_array()) *content = with_breaks(*content);
    if (format.knows_parts && content->is_string())
      *content = Messages::array({{{"type", "text"}, {"text", *content}}});
    else if (!format.knows_parts && content->is_array())
      *content = joined(*content);
  }
  ChatRequest changed = request;
  changed.messages = json_line(messages);
  std::string text = format.render(guarded(changed, tokenizer));
  replace_all(text, kPicture, mark);
  return text;
}

}  // namespace fovea::text
