#include "grammar/schema_parts.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <string>

#include "base/error.h"
#include "fovea/excerpt.h"

namespace fovea {
namespace {

using Json = SchemaTree::Json;
using Names = std::set<std::string, std::less<>>;

constexpr int64_t kMostRepeats = 100'000;
constexpr size_t kMostProperties = 2000;

// Keywords that inform a reader and restrict nothing; "format" and those of contents are among them
// by default (JSON Schema Validation 2020-12, 7.2.1 and 8.1). Some are of OpenAPI.
const Names kNotes = {"title",
                      "description",
                      "default",
                      "examples",
                      "$schema",
                      "$id",
                      "$comment",
                      "$defs",
                      "$anchor",
                      "$dynamicAnchor",
                      "definitions",
                      "deprecated",
                      "readOnly",
                      "writeOnly",
                      "format",
                      "strict",
                      "nullable",
                      "contentEncoding",
                      "contentMediaType",
                      "contentSchema",
                      "example",
                      "discriminator",
                      "externalDocs",
                      "xml"};
const Names kInPlace = {"$ref", "allOf", "anyOf", "oneOf"};
const Names kOfAnyType = {"type", "enum", "const", "not"};

struct TypeWords {
  const char* name;
  Types types;
  Names keywords;
};
const std::vector<TypeWords> kTypes = {
    {"object",
     kObjectType,
     {"properties", "required", "additionalProperties", "unevaluatedProperties",
      "patternProperties", "propertyNames", "minProperties", "maxProperties"}},
    {"array",
     kArrayType,
     {"items", "prefixItems", "additionalItems", "unevaluatedItems", "minItems", "maxItems",
      "uniqueItems"}},
    {"string", kStringType, {"minLength", "maxLength", "pattern"}},
    {"number",
     kNumberType,
     {"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"}},
    {"integer", kIntegerType, {}},
    {"boolean", kBooleanType, {}},
    {"null", kNullType, {}}};

bool is_note(std::string_view key) { return kNotes.contains(key) || key.starts_with("x-"); }

Types types_named(const Json& given, const Place& place) {
  Types types = 0;
  const auto add = [&](const Json& name) {
    const auto known = std::find_if(kTypes.begin(), kTypes.end(), [&](const TypeWords& each) {
      return name.is_string() && name.get_ref<const std::string&>() == each.name;
    });
    if (known == kTypes.end())
      refuse_schema(place,
                    "type is unknown; expected object, array, string, number, integer, boolean or "
                    "null");
    types |= known->types;
  };
  if (given.is_array())
    std::ranges::for_each(given, add);
  else
    add(given);
  if (types == 0) refuse_schema(place, "type is empty; expected at least one");
  return types;
}

// Returns the types that `not` forbids: all for a schema that every value satisfies.
Types types_forbidden(const Json& schema, const Place& place) {
  if (schema == true) return kEveryType;
  if (schema == false) return 0;
  const Json* const type = schema.is_object() ? find_key(schema, "type") : nullptr;
  const bool alone = schema.is_object() && !restricts_besides(schema, "type");
  // An integer may be written as a number with a fraction of zeros.
  if (alone && type == nullptr) return kEveryType;
  if (alone && types_named(*type, place) != kIntegerType) return types_named(*type, place);
  refuse_keyword(place, "not is supported with {}, or with type and another type than integer");
}

int64_t count_of(const Json& found, const char* key, const Place& place) {
  const bool whole = found.is_number_unsigned() && found.get<uint64_t>() <= kMostRepeats;
  if (!whole)
    refuse_schema(
        place, fmt::format("{} is invalid; expected an integer from 0 to {}", key, kMostRepeats));
  return found.get<int64_t>();
}

// Returns the closer of the bounds with the keys `key` and `exclusive_key`. sign: 1 for lower
// bounds, -1 for upper ones.
std::optional<NumberBound> bound(const Conjunction& all, const char* key, const char* exclusive_key,
                                 int sign, const Place& place) {
  std::optional<NumberBound> closest;
  double closest_value = 0;
  for (const Json* schema : all) {
    for (const char* const each : {key, exclusive_key}) {
      const Json* const found = find_key(*schema, each);
      if (found == nullptr) continue;
      if (!found->is_number())
        refuse_schema(place, fmt::format("{} is invalid; expected a number", each));
      const double value = found->get<double>() * sign;
      const bool exclusive = each == exclusive_key;
      if (closest && (value < closest_value || (value == closest_value && !exclusive))) continue;
      closest = {found->dump(), exclusive};
      closest_value = value;
    }
  }
  return closest;
}

bool within_bounds(double value, const Conjunction& all, const Place& place) {
  const auto least = lower_bound(all, place), most = upper_bound(all, place);
  if (least &&
      (least->exclusive ? value <= std::stod(least->number) : value < std::stod(least->number)))
    return false;
  return !most ||
         (most->exclusive ? value < std::stod(most->number) : value <= std::stod(most->number));
}

bool within_lengths(const std::string& text, const Conjunction& all, const Place& place) {
  const int64_t length = std::count_if(text.begin(), text.end(),
                                       [](char c) { return (static_cast<uint8_t>(c) >> 6) != 2; });
  return length >= largest_count(all, "minLength", place).value_or(0) &&
         length <= smallest_count(all, "maxLength", place).value_or(length);
}

}  // namespace

const Json* find_key(const Json& schema, const char* key) {
  const auto found = schema.find(key);
  return found == schema.end() ? nullptr : &*found;
}

void check_keywords(const Json& schema, const Place& place) {
  for (const auto& [key, value] : schema.items()) {
    const bool known = is_note(key) || kInPlace.contains(key) || kOfAnyType.contains(key) ||
                       std::any_of(kTypes.begin(), kTypes.end(), [&](const TypeWords& type) {
                         return type.keywords.contains(key);
                       });
    if (!known)
      refuse_keyword(place, "the keyword " + excerpt(key, 40) +
                                " is not supported; expected one listed in docs/serve.md");
  }
}

bool has_keyword(const Json& schema, Types types, const std::vector<std::string_view>& except) {
  for (const TypeWords& type : kTypes) {
    if ((type.types & types) == 0) continue;
    for (const std::string& key : type.keywords)
      if (std::ranges::count(except, key) == 0 && schema.contains(key)) return true;
  }
  return false;
}

bool restricts_besides(const Json& schema, std::string_view key) {
  for (const auto& [other, value] : schema.items())
    if (other != key && !is_note(other)) return true;
  return false;
}

Types type_of(const Json& value) {
  if (value.is_object()) return kObjectType;
  if (value.is_array()) return kArrayType;
  if (value.is_string()) return kStringType;
  if (value.is_number_integer()) return kIntegerType;
  if (value.is_number())
    return std::floor(value.get<double>()) == value.get<double>() ? kIntegerType : kFractionType;
  return value.is_boolean() ? kBooleanType : kNullType;
}

Types allowed_types(const Conjunction& all, const Place& place) {
  Types types = kEveryType;
  for (const Json* schema : all) {
    if (const Json* given = find_key(*schema, "type")) types &= types_named(*given, place);
    if (const Json* other = find_key(*schema, "not")) types &= ~types_forbidden(*other, place);
  }
  return types;
}

Types generated_types(const Conjunction& all, const Place& place) {
  const Types allowed = allowed_types(all, place);
  Types implied = 0;
  for (const Json* schema : all) {
    if (schema->contains("type")) return allowed;
    for (const TypeWords& type : kTypes)
      if (has_keyword(*schema, type.types)) implied |= type.types;
  }
  return implied == 0 ? allowed : allowed & implied;
}

std::optional<Conjunction> literals_of(const Conjunction& all, const Place& place) {
  const auto less = [](const Json* a, const Json* b) { return *a < *b; };
  std::optional<Conjunction> values;
  const auto keep = [&](const Conjunction& given) {
    if (!values) return void(values = given);
    const std::set<const Json*, decltype(less)> set(given.begin(), given.end(), less);
    std::erase_if(*values, [&](const Json* value) { return !set.contains(value); });
  };
  for (const Json* schema : all) {
    if (const Json* given = find_key(*schema, "enum")) {
      if (!given->is_array() || given->empty())
        refuse_schema(place, "enum is invalid; expected a non-empty array of values");
      Conjunction each;
      for (const Json& value : *given) each.push_back(&value);
      keep(each);
    }
    if (const Json* only = find_key(*schema, "const")) keep({only});
  }
  return values;
}

bool satisfies(const Json& value, const Conjunction& all, const Place& place) {
  const Types type = type_of(value);
  if ((type & allowed_types(all, place)) == 0) return false;
  for (const Json* schema : all) {
    const bool other = has_keyword(
        *schema, type,
        {"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "minLength", "maxLength"});
    if (other)
      refuse_keyword(place,
                     "enum and const cannot be combined with a further keyword of the type "
                     "of their values; expected only one of them");
  }
  if (value.is_string()) return within_lengths(value.get_ref<const std::string&>(), all, place);
  return !value.is_number() || within_bounds(value.get<double>(), all, place);
}

std::optional<int64_t> largest_count(const Conjunction& all, const char* key, const Place& place) {
  std::optional<int64_t> largest;
  for (const Json* schema : all)
    if (const Json* found = find_key(*schema, key))
      largest = std::max(largest.value_or(0), count_of(*found, key, place));
  return largest;
}

std::optional<int64_t> smallest_count(const Conjunction& all, const char* key, const Place& place) {
  std::optional<int64_t> smallest;
  for (const Json* schema : all)
    if (const Json* found = find_key(*schema, key))
      smallest = std::min(smallest.value_or(kMostRepeats), count_of(*found, key, place));
  return smallest;
}

std::optional<NumberBound> lower_bound(const Conjunction& all, const Place& place) {
  return bound(all, "minimum", "exclusiveMinimum", 1, place);
}

std::optional<NumberBound> upper_bound(const Conjunction& all, const Place& place) {
  return bound(all, "maximum", "exclusiveMaximum", -1, place);
}

std::vector<PropertyName> names_of(const Conjunction& all, const SchemaTree& tree,
                                   const Place& place) {
  std::map<std::string_view, size_t> places;
  std::vector<PropertyName> names;
  std::set<std::string_view> missing;
  const auto check_number = [&] {
    if (names.size() + missing.size() > kMostProperties)
      refuse_schema(place, fmt::format("{} properties and required names; expected at most {}",
                                       names.size() + missing.size(), kMostProperties));
  };
  for (const Json* schema : all) {
    const Json* const given = find_key(*schema, "properties");
    if (given == nullptr) continue;
    if (!given->is_object())
      refuse_schema(place, "properties is not an object; expected an object of schemas");
    for (const std::string_view name : tree.keys(*given))
      if (places.emplace(name, names.size()).second) names.push_back({name, false});
    check_number();
  }
  for (const Json* schema : all) {
    const Json* const required = find_key(*schema, "required");
    if (required == nullptr) continue;
    if (!required->is_array())
      refuse_schema(place, "required is not an array; expected an array of names");
    for (const Json& name : *required) {
      if (!name.is_string())
        refuse_schema(place, "required is not an array of names; expected strings");
      const auto known = places.find(name.get_ref<const std::string&>());
      if (known != places.end())
        names[known->second].required = true;
      else
        missing.insert(name.get_ref<const std::string&>());
    }
    check_number();
  }
  for (const std::string_view name : missing) names.push_back({name, true});
  return names;
}

Conjunction value_of(const Conjunction& all, std::string_view name) {
  Conjunction value;
  bool named = false;
  for (const Json* schema : all) {
    const Json* const properties = find_key(*schema, "properties");
    if (properties != nullptr && properties->contains(name)) {
      value.push_back(&*properties->find(name));
      named = true;
    } else if (const Json* other = find_key(*schema, "additionalProperties")) {
      value.push_back(other);
    }
  }
  for (const Json* schema : all)
    if (const Json* other = find_key(*schema, "unevaluatedProperties"); other && !named)
      value.push_back(other);
  return value;
}

}  // namespace fovea
