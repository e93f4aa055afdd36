#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "serve/request/fields.h"

namespace fovea::serve {
namespace {

constexpr size_t kStopBytes = 256, kBiases = 1024;

[[noreturn]] void wrong(const std::string& param, const std::string& expected,
                        const char* code = "invalid_type") {
  throw ApiError{400, param + ": expected " + expected, param, code};
}

[[noreturn]] void out_of_range(const std::string& param, const std::string& expected) {
  wrong(param, expected, "out_of_range");
}

std::string bounds(const FieldInfo& field) {
  return fmt::format("from {:.17g} to {:.17g}", field.least, field.most);
}

// Returns whether a value is an integer, or a number such as 5.0, which some languages send for
// one.
bool is_integer(const Json& value) {
  constexpr double kExact = 9007199254740992;  // 2^53
  if (!value.is_number_float()) return value.is_number_integer();
  const double number = value.get<double>();
  return std::abs(number) <= kExact && number == std::trunc(number);
}

void check_integer(const Json& value, const FieldInfo& field) {
  if (!is_integer(value)) wrong(field.name, "an integer " + bounds(field));
  const bool beyond =
      value.is_number_unsigned() && value.get<uint64_t>() > static_cast<uint64_t>(INT64_MAX);
  const auto number = static_cast<double>(value.get<int64_t>());
  if (beyond || number < field.least || number > field.most) {
    out_of_range(field.name, "an integer " + bounds(field));
  }
}

void check_number(const Json& value, const FieldInfo& field) {
  if (!value.is_number()) wrong(field.name, "a number " + bounds(field));
  const double number = value.get<double>();
  if (!(number >= field.least && number <= field.most)) {
    out_of_range(field.name, "a number " + bounds(field));
  }
}

void check_length(size_t length, const FieldInfo& field, const char* what) {
  const auto count = static_cast<double>(length);
  if (count >= field.least && count <= field.most) return;
  out_of_range(field.name, fmt::format("{:.0f} to {:.0f} {}", field.least, field.most, what));
}

void check_strings(const Json& value, const FieldInfo& field, bool or_one) {
  const char* const expected = or_one ? "a string or an array of strings" : "an array of strings";
  if (or_one && value.is_string()) {
    if (value.get_ref<const std::string&>().empty())
      wrong(field.name, "a text of at least one character", "empty");
    return;
  }
  if (!value.is_array()) wrong(field.name, expected);
  if (value.empty()) wrong(field.name, "at least one text", "empty");
  check_length(value.size(), field, "texts");
  for (const Json& text : value) {
    if (!text.is_string()) wrong(field.name, expected);
  }
}

void check_stops(const Json& value, const FieldInfo& field) {
  const auto check_one = [&](const Json& text) {
    if (!text.is_string()) wrong(field.name, "a string or an array of strings");
    const size_t bytes = text.get_ref<const std::string&>().size();
    if (bytes == 0 || bytes > kStopBytes) {
      out_of_range(field.name, fmt::format("texts of 1 to {} bytes", kStopBytes));
    }
  };
  if (!value.is_array()) return check_one(value);
  check_length(value.size(), field, "strings");
  for (const Json& text : value) check_one(text);
}

void check_ids(const Json& value, const std::string& name, int64_t vocabulary) {
  if (!value.is_array()) wrong(name, "an array of token ids");
  for (const Json& id : value) {
    if (!id.is_number_integer()) wrong(name, "an array of token ids");
    const bool beyond =
        id.is_number_unsigned() && id.get<uint64_t>() >= static_cast<uint64_t>(vocabulary);
    if (beyond || id.get<int64_t>() < 0 || id.get<int64_t>() >= vocabulary) {
      out_of_range(name, fmt::format("token ids from 0 to {}", vocabulary - 1));
    }
  }
}

void check_prompts(const Json& value, const FieldInfo& field, int64_t vocabulary) {
  const char* const expected = "a string, an array of token ids, or an array of either";
  if (value.is_string()) return;
  if (!value.is_array()) wrong(field.name, expected);
  if (value.empty()) wrong(field.name, "at least one text or token", "empty");
  if (value[0].is_number()) return check_ids(value, field.name, vocabulary);
  check_length(value.size(), field, "prompts");
  for (const Json& prompt : value) {
    if (prompt.is_string()) continue;
    if (!prompt.is_array()) wrong(field.name, expected);
    check_ids(prompt, field.name, vocabulary);
  }
}

void check_biases(const Json& value, const FieldInfo& field, int64_t vocabulary) {
  if (!value.is_object()) wrong(field.name, "an object from token ids to numbers");
  if (value.size() > kBiases) out_of_range(field.name, fmt::format("at most {} ids", kBiases));
  for (const auto& [id, bias] : value.items()) {
    const bool digits =
        !id.empty() && id.size() <= 9 &&
        std::all_of(id.begin(), id.end(), [](char c) { return c >= '0' && c <= '9'; });
    if (!digits || std::stoll(id) >= vocabulary) {
      out_of_range(field.name, fmt::format("token ids from 0 to {}", vocabulary - 1));
    }
    check_number(bias, field);
  }
}

constexpr const char* kRoles = "system, developer, user, assistant, tool or function";

// Checks one message. Its content is a text, or an array of parts: texts, and images if the model
// reads them.
void check_message(const Json& message, const std::string& name) {
  if (!message.is_object()) wrong(name, "an object with role and content");
  const auto role = message.find("role");
  if (role == message.end() || !role->is_string()) {
    wrong(name + ".role", kRoles);
  }
  static const std::set<std::string> known = {"system",    "developer", "user",
                                              "assistant", "tool",      "function"};
  if (!known.contains(role->get_ref<const std::string&>()))
    wrong(name + ".role", kRoles, "invalid_value");
  const auto content = message.find("content");
  if (content == message.end() || content->is_null() || content->is_string()) return;
  if (!content->is_array()) wrong(name + ".content", "a string or an array of parts");
  for (const Json& part : *content) {
    const bool text = part.is_object() && part.contains("text") && part["text"].is_string();
    const bool image = part.is_object() && part.contains("image_url");
    if (!text && !image)
      wrong(name + ".content", "parts of type text or image_url; other types are not supported");
  }
}

void check_messages(const Json& value, const FieldInfo& field) {
  if (!value.is_array()) wrong(field.name, "an array of messages");
  check_length(value.size(), field, "messages");
  for (size_t i = 0; i < value.size(); ++i) {
    check_message(value[i], fmt::format("{}[{}]", field.name, i));
  }
}

void check(const Json& value, const FieldInfo& field, int64_t vocabulary) {
  switch (field.type) {
    case FieldType::boolean:
      if (!value.is_boolean()) wrong(field.name, "true or false");
      return;
    case FieldType::integer: return check_integer(value, field);
    case FieldType::number: return check_number(value, field);
    case FieldType::text:
      if (!value.is_string()) wrong(field.name, "a string");
      return check_length(value.get_ref<const std::string&>().size(), field, "bytes");
    case FieldType::stops: return check_stops(value, field);
    case FieldType::strings: return check_strings(value, field, false);
    case FieldType::texts: return check_strings(value, field, true);
    case FieldType::ids:
      check_ids(value, field.name, vocabulary);
      return check_length(value.size(), field, "token ids");
    case FieldType::prompts: return check_prompts(value, field, vocabulary);
    case FieldType::biases: return check_biases(value, field, vocabulary);
    case FieldType::messages: return check_messages(value, field);
    case FieldType::array:
      if (!value.is_array()) wrong(field.name, "an array");
      return check_length(value.size(), field, "entries");
    case FieldType::object:
      if (!value.is_object()) wrong(field.name, "an object");
      return check_length(value.size(), field, "entries");
    case FieldType::automatic_integer:
      if (value != "auto") check_integer(value, field);
      return;
    case FieldType::automatic_number:
      if (value != "auto") check_number(value, field);
      return;
    case FieldType::any: return;
  }
}

}  // namespace

bool is_neutral(const Json& value) {
  if (value.is_string()) return value.get_ref<const std::string&>().empty();
  return value.is_null() || value == false || (value.is_structured() && value.empty());
}

Json parse_body(const std::string& body) {
  try {
    Json json = parse_ordered_json(body, "body");
    if (json.is_object()) return json;
  } catch (const JsonFault& fault) {
    throw ApiError{400, fault.what(), "", fault.code()};
  }
  throw ApiError{400, "body: expected a JSON object", "", "invalid_json"};
}

Json json_or_discarded(std::string_view text) {
  try {
    return parse_ordered_json(text, "call");
  } catch (const JsonFault&) {
    return Json(Json::value_t::discarded);
  }
}

namespace {

// Returns the value at "a.b", or null if it or its parent is missing.
const Json* value_of(const Json& body, std::string_view name) {
  const Json* value = &body;
  while (true) {
    const size_t dot = std::min(name.find('.'), name.size());
    if (!value->is_object()) return nullptr;
    const auto found = value->find(std::string(name.substr(0, dot)));
    if (found == value->end() || found->is_null()) return nullptr;
    value = &*found;
    if (dot == name.size()) return value;
    name.remove_prefix(dot + 1);
  }
}

}  // namespace

std::vector<std::string> unknown_keys(const Json& body, const std::vector<FieldInfo>& fields) {
  std::vector<std::string> unknown;
  for (const auto& item : body.items()) {
    const std::string& key = item.key();
    const bool known = std::any_of(fields.begin(), fields.end(),
                                   [&](const FieldInfo& field) { return field.name == key; });
    if (!known) unknown.push_back(key);
  }
  return unknown;
}

const Json* checked_value(const Json& body, const FieldInfo& field, int64_t vocabulary) {
  const Json* const value = value_of(body, field.name);
  if (value != nullptr) {
    check(*value, field, vocabulary);
  } else if (field.required) {
    throw ApiError{400, field.name + ": is missing; expected " + field.help, field.name,
                   "missing_required_parameter"};
  }
  return value;
}

}  // namespace fovea::serve
