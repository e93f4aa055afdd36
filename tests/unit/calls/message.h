#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "fovea/text/calls.h"

namespace fovea::text {

struct ReadCall {
  std::string name, arguments;
  bool operator==(const ReadCall&) const = default;
};

// A message whose parts are joined.
struct Message {
  std::string reasoning = {}, content = {};
  std::vector<ReadCall> calls = {};
  bool operator==(const Message&) const = default;

  void add(const std::vector<MessagePart>& parts) {
    for (const MessagePart& part : parts) {
      if (part.kind == MessagePart::reasoning) reasoning += part.text;
      if (part.kind == MessagePart::content) content += part.text;
      if (part.kind != MessagePart::call) continue;
      if (part.begins) calls.push_back({part.name, ""});
      calls.at(part.call_index).arguments += part.text;
    }
  }
};

// Reads a text in pieces of `size` bytes.
inline Message divided_message(const MessageRules& rules, const std::string& text, size_t size) {
  MessageReader reader(rules);
  Message message;
  for (size_t at = 0; at < text.size(); at += size) message.add(reader.add(text.substr(at, size)));
  message.add(reader.finish());
  return message;
}

inline Message whole_message(const MessageRules& rules, const std::string& text) {
  return divided_message(rules, text, std::max<size_t>(1, text.size()));
}

}  // namespace fovea::text
