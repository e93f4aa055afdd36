#include "grammar/schema_literals.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "grammar/number_order.h"

namespace fovea::text {
namespace {

using Json = SchemaTree::Json;

std::string key_of_fraction(double value) {
  if (value == 0) return "0";
  return std::floor(value) == value ? fmt::format("{:.0f}", value) : Json(value).dump();
}

void check_enum(const Json& values, const SchemaLocation& location) {
  if (!values.is_array() || values.empty())
    refuse_schema(location, "enum is invalid; expected a non-empty array of values");
}

LiteralKeys keys_of(const Conjunction& values) {
  LiteralKeys keys;
  for (const Json* value : values) keys.insert(literal_key(*value));
  return keys;
}

bool within_bounds(const Json& value, const Conjunction& all, const SchemaLocation& location) {
  const auto least = lower_bound(all, location), most = upper_bound(all, location);
  const std::string number = value.dump();
  const auto outside = [&](const NumberBound& bound, std::strong_ordering wrong) {
    const auto order = compare_numbers(number, bound.number);
    return order == wrong || (std::is_eq(order) && bound.exclusive);
  };
  return !(least && outside(*least, std::strong_ordering::less)) &&
         !(most && outside(*most, std::strong_ordering::greater));
}

bool within_lengths(const std::string& text, const Conjunction& all,
                    const SchemaLocation& location) {
  const int64_t length = std::count_if(text.begin(), text.end(),
                                       [](char c) { return (static_cast<uint8_t>(c) >> 6) != 2; });
  return length >= largest_count(all, "minLength", location).value_or(0) &&
         length <= smallest_count(all, "maxLength", location).value_or(length);
}

}  // namespace

std::string literal_key(const Json& value) {
  if (value.is_number_float()) return key_of_fraction(value.get<double>());
  if (!value.is_structured()) return value.dump();
  std::string key(1, value.is_object() ? '{' : '[');
  for (const auto& [name, part] : value.items()) {
    if (value.is_object()) key += Json(name).dump() + ':';
    key += literal_key(part) + ',';
  }
  return key;
}

std::optional<Conjunction> literals_of(const Conjunction& all, SchemaWork& work,
                                       const SchemaLocation& location) {
  std::optional<Conjunction> values;
  const auto keep = [&](const Conjunction& given) {
    work.add(given.size(), location);
    if (!values) return void(values = given);
    work.add(kStepsOfValue * (given.size() + values->size()), location);
    const LiteralKeys keys = keys_of(given);
    std::erase_if(*values, [&](const Json* value) { return !keys.contains(literal_key(*value)); });
  };
  for (const Json* schema : all) {
    if (const Json* given = find_key(*schema, "enum")) {
      check_enum(*given, location);
      Conjunction each;
      for (const Json& value : *given) each.push_back(&value);
      keep(each);
    }
    if (const Json* only = find_key(*schema, "const")) keep({only});
  }
  return values;
}

const Json* excluded_literals(const Json& not_schema) {
  for (const char* key : {"enum", "const"})
    if (not_schema.is_object() && not_schema.contains(key) && !restricts_besides(not_schema, key))
      return find_key(not_schema, key);
  return nullptr;
}

Conjunction exclusions_of(const Conjunction& all, const SchemaLocation& location) {
  Conjunction values;
  for (const Json* schema : all) {
    const Json* const other = find_key(*schema, "not");
    const Json* const excluded = other != nullptr ? excluded_literals(*other) : nullptr;
    if (excluded == nullptr) continue;
    if (other->contains("const")) {
      values.push_back(excluded);
    } else {
      check_enum(*excluded, location);
      for (const Json& value : *excluded) values.push_back(&value);
    }
  }
  return values;
}

bool satisfies(const Json& value, const Conjunction& all, const SchemaLocation& location) {
  const Types type = type_of(value);
  if ((type & allowed_types(all, location)) == 0) return false;
  for (const Json* schema : all) {
    const bool other = has_keyword(
        *schema, type,
        {"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "minLength", "maxLength"});
    if (other)
      refuse_keyword(location,
                     "enum and const cannot be combined with a further keyword of the type "
                     "of their values; expected only one of them");
  }
  if (value.is_string()) return within_lengths(value.get_ref<const std::string&>(), all, location);
  return !value.is_number() || within_bounds(value, all, location);
}

}  // namespace fovea::text
