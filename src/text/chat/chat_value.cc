#include "fovea/text/chat_value.h"

#include <algorithm>
#include <limits>

#include "base/error.h"
#include "base/float_mode.h"
#include "base/ordered_json.h"
#include "chat/values.h"
#include "unicode/utf8.h"

namespace fovea::text {

using jinja::Dict;
using jinja::Value;

jinja::Runtime unlimited() {
  RenderLimits limits;
  limits.steps = limits.output_bytes = limits.value_bytes = std::numeric_limits<size_t>::max();
  return jinja::Runtime("variables", limits);
}

ChatValue chat_value(Value value) {
  if (value.is(jinja::Kind::none)) return {};
  return ChatValue(std::make_shared<const ChatValue::Data>(ChatValue::Data{std::move(value)}));
}

const Value& value_of(const ChatValue& value) {
  static const Value none = Value::none();
  return value.is_null() ? none : value.data()->value;
}

ChatValue::ChatValue(double value) : ChatValue(chat_value(Value(value))) {}
ChatValue::ChatValue(std::string_view text) : ChatValue(chat_value(Value(utf8::repaired(text)))) {}
ChatValue::ChatValue(const std::string& text) : ChatValue(std::string_view(text)) {}
ChatValue::ChatValue(const char* text) : ChatValue(std::string_view(text)) {}

ChatValue ChatValue::of_boolean(bool value) { return chat_value(Value(value)); }

ChatValue ChatValue::of_integer(int64_t value, bool overflows) {
  check(!overflows, "an integer above 2^63 - 1; expected a smaller one");
  return chat_value(Value(value));
}

void ChatValue::check_depth(int depth) {
  check(depth <= kMostDepth, "values are nested too deeply; expected at most {} levels",
        kMostDepth);
}

ChatValue ChatValue::list(const std::vector<ChatValue>& items) {
  jinja::Runtime runtime = unlimited();
  jinja::Values values;
  values.reserve(items.size());
  for (const ChatValue& item : items) values.push_back(value_of(item));
  return chat_value(new_sequence(runtime, std::move(values)));
}

ChatValue ChatValue::object(const Members& members) {
  jinja::Runtime runtime = unlimited();
  const auto dict = std::make_shared<Dict>();
  for (const auto& [key, value] : members)
    dict->set(runtime, value_of(ChatValue(key)), value_of(value));
  return chat_value(Value(std::shared_ptr<const Dict>(dict)));
}

ChatValue ChatValue::parse(std::string_view json, const std::string& name) {
  const FloatMode mode;
  jinja::Runtime runtime = unlimited();
  return chat_value(jinja::from_json(runtime, json, name));
}

std::string ChatValue::json() const {
  const FloatMode mode;
  jinja::Runtime runtime = unlimited();
  return to_json(runtime, value_of(*this),
                 {.indent = {}, .item_separator = ",", .key_separator = ":"});
}

ChatValue chat_message(std::string_view role, const ChatValue& content, const ChatValue& more) {
  jinja::Runtime runtime = unlimited();
  const auto message = std::make_shared<Dict>(
      value_of(ChatValue::object({{"role", role}, {"content", content}})).dict());
  const Value& members = value_of(more);
  check(more.is_null() || members.is(jinja::Kind::dict),
        "members: not a JSON object; expected an object");
  if (!more.is_null())
    for (const auto& [key, value] : members.dict().entries()) message->set(runtime, key, value);
  return chat_value(Value(std::shared_ptr<const Dict>(message)));
}

}  // namespace fovea::text
