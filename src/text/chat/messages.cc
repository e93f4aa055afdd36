#include "base/error.h"
#include "base/ordered_json.h"
#include "fovea/text/chat.h"

namespace fovea::text {

std::string messages_json(const std::vector<ChatMessage>& messages) {
  auto list = nlohmann::ordered_json::array();
  for (const ChatMessage& message : messages) {
    nlohmann::ordered_json& json = list.emplace_back();
    json = {{"role", message.role}, {"content", message.content}};
    if (message.members.empty()) continue;
    const auto members = parse_ordered_json(message.members, "members");
    check(members.is_object(), "members: not a JSON object; expected an object");
    json.update(members);
  }
  return json_line(list);
}

}  // namespace fovea::text
