#pragma once

#include <concepts>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace fovea::text {

// A JSON value in a conversation: chat templates read any key of a message, and observe the order
// of keys. It is made once, from JSON text or from its parts, and given to the template as it is.
// Immutable and safe to use from any thread; copies share their parts. Texts are UTF-8; invalid
// bytes become U+FFFD.
class ChatValue {
 public:
  using Members = std::vector<std::pair<std::string, ChatValue>>;

  ChatValue() = default;                                   // null
  template <std::same_as<bool> Bool>                       // no pointers
  ChatValue(Bool value) : ChatValue(of_boolean(value)) {}  // NOLINT: parts of lists and objects
  ChatValue(double value);                                 // NOLINT
  ChatValue(std::string_view text);                        // NOLINT
  ChatValue(const std::string& text);                      // NOLINT
  ChatValue(const char* text);                             // NOLINT
  // Throws InvalidArgument above 2^63 - 1.
  template <std::integral Number>
    requires(!std::same_as<Number, bool>)
  ChatValue(Number value)  // NOLINT
      : ChatValue(of_integer(static_cast<int64_t>(value), std::cmp_greater(value, INT64_MAX))) {}

  static ChatValue list(const std::vector<ChatValue>& items);
  // A member that repeats a key replaces the value of the earlier one.
  static ChatValue object(const Members& members);
  // Throws BadFile, beginning with `name`, if the text is not valid JSON, repeats a key or is
  // nested too deeply.
  static ChatValue parse(std::string_view json, const std::string& name);
  // Converts a value of a JSON library with the functions of nlohmann::json. Throws InvalidArgument
  // if it is nested too deeply.
  template <class Json>
  static ChatValue of(const Json& json, int depth = 0);

  bool is_null() const { return data_ == nullptr; }
  std::string json() const;  // in one line

  struct Data;
  explicit ChatValue(std::shared_ptr<const Data> data) : data_(std::move(data)) {}
  const Data* data() const { return data_.get(); }  // null = null

 private:
  static ChatValue of_boolean(bool value);
  static ChatValue of_integer(int64_t value, bool overflows);
  static void check_depth(int depth);

  std::shared_ptr<const Data> data_;
};

// Returns a message of a conversation: an object with "role", "content" and the members of the
// object `more`, such as tool_calls, which may replace these two. Throws InvalidArgument if `more`
// is neither null nor an object.
ChatValue chat_message(std::string_view role, const ChatValue& content, const ChatValue& more = {});

template <class Json>
ChatValue ChatValue::of(const Json& json, int depth) {
  check_depth(depth);
  if (json.is_string()) return json.template get_ref<const std::string&>();
  if (json.is_boolean()) return json.template get<bool>();
  if (json.is_number_unsigned()) return json.template get<uint64_t>();
  if (json.is_number_integer()) return json.template get<int64_t>();
  if (json.is_number_float()) return json.template get<double>();
  if (json.is_array()) {
    std::vector<ChatValue> items;
    for (const Json& item : json) items.push_back(of(item, depth + 1));
    return list(items);
  }
  if (!json.is_object()) return {};
  Members members;
  for (const auto& [key, value] : json.items()) members.emplace_back(key, of(value, depth + 1));
  return object(members);
}

}  // namespace fovea::text
