#include "grammar/schema_parts.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <string>

#include "base/error.h"
#include "fovea/core/excerpt.h"
#include "grammar/number_order.h"

namespace fovea::text {
namespace {

using Json = SchemaTree::Json;
using Names = std::set<std::string, std::less<>>;

constexpr int64_t kMostRepeats = 100'000;

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
const Names kInPlace = {"$ref", "allOf", "anyOf", "oneOf", "if", "then", "else"};
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
      "patternProperties", "propertyNames", "minProperties", "maxProperties", "dependentRequired",
      "dependentSchemas", "dependencies"}},
    {"array",
     kArrayType,
     {"items", "prefixItems", "additionalItems", "unevaluatedItems", "minItems", "maxItems",
      "uniqueItems", "contains", "minContains", "maxContains"}},
    {"string", kStringType, {"minLength", "maxLength", "pattern"}},
    {"number",
     kNumberType,
     {"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"}},
    {"integer", kIntegerType, {}},
    {"boolean", kBooleanType, {}},
    {"null", kNullType, {}}};

bool is_note(std::string_view key) { return key.starts_with("x-") || kNotes.contains(key); }

Types types_named(const Json& given, const SchemaLocation& location) {
  Types types = 0;
  const auto add = [&](const Json& name) {
    const auto known = std::find_if(kTypes.begin(), kTypes.end(), [&](const TypeWords& each) {
      return name.is_string() && name.get_ref<const std::string&>() == each.name;
    });
    if (known == kTypes.end())
      refuse_schema(location,
                    "type is unknown; expected object, array, string, number, integer, boolean or "
                    "null");
    types |= known->types;
  };
  if (given.is_array())
    std::ranges::for_each(given, add);
  else
    add(given);
  if (types == 0) refuse_schema(location, "type is empty; expected at least one");
  return types;
}

// Returns the types that `not` forbids: all for a schema that every value satisfies. Other schemas
// than a type are read by SchemaWays and exclusions_of().
Types types_forbidden(const Json& schema, const SchemaLocation& location) {
  if (schema == true) return kEveryType;
  if (!schema.is_object()) return 0;
  if (!restricts_besides(schema, "")) return kEveryType;
  const Json* const type = find_key(schema, "type");
  if (type == nullptr || restricts_besides(schema, "type")) return 0;
  // An integer may be written as a number with a fraction of zeros.
  if (types_named(*type, location) == kIntegerType)
    refuse_keyword(location, "not is not supported for the type integer; expected another type");
  return types_named(*type, location);
}

int64_t count_of(const Json& found, const char* key, const SchemaLocation& location) {
  const bool whole = found.is_number_unsigned() && found.get<uint64_t>() <= kMostRepeats;
  if (!whole)
    refuse_schema(location, fmt::format("{} is invalid; expected an integer from 0 to {}", key,
                                        kMostRepeats));
  return found.get<int64_t>();
}

// Beyond 2^53, a bound with a fraction or an exponent may have lost digits as a double.
void check_exact(const Json& bound, const char* key, const SchemaLocation& location) {
  constexpr double kExact = 9007199254740992.0;
  constexpr int64_t kExactDigits = 15;
  if (!bound.is_number_float() || std::abs(bound.get<double>()) < kExact) return;
  const std::string text = bound.dump();
  const std::string digits = text.substr(0, text.find('e'));
  if (std::ranges::count_if(digits, [](char c) { return c >= '0' && c <= '9'; }) > kExactDigits)
    refuse_schema(location,
                  fmt::format("{} has more digits than a double holds; expected an integer "
                              "of 64 bits",
                              key));
}

// Returns the closer of the bounds with the keys `key` and `exclusive_key`. `closer`: less for
// upper bounds, greater for lower ones.
std::optional<NumberBound> bound(const Conjunction& all, const char* key, const char* exclusive_key,
                                 std::strong_ordering closer, const SchemaLocation& location) {
  std::optional<NumberBound> closest;
  for (const Json* schema : all) {
    for (const char* const each : {key, exclusive_key}) {
      const Json* const found = find_key(*schema, each);
      if (found == nullptr) continue;
      if (!found->is_number())
        refuse_schema(location, fmt::format("{} is invalid; expected a number", each));
      check_exact(*found, each, location);
      const NumberBound next = {found->dump(), each == exclusive_key};
      const auto order = closest ? compare_numbers(next.number, closest->number) : closer;
      if (order == closer || (std::is_eq(order) && next.exclusive)) closest = next;
    }
  }
  return closest;
}

}  // namespace

const Json* find_key(const Json& schema, const char* key) {
  const auto found = schema.find(key);
  return found == schema.end() ? nullptr : &*found;
}

void check_keywords(const Json& schema, const SchemaLocation& location) {
  for (const auto& [key, value] : schema.items()) {
    const bool known = is_note(key) || kInPlace.contains(key) || kOfAnyType.contains(key) ||
                       std::any_of(kTypes.begin(), kTypes.end(), [&](const TypeWords& type) {
                         return type.keywords.contains(key);
                       });
    if (!known)
      refuse_keyword(location, "the keyword " + excerpt(key, 40) +
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

Types allowed_types(const Conjunction& all, const SchemaLocation& location) {
  Types types = kEveryType;
  for (const Json* schema : all) {
    if (const Json* given = find_key(*schema, "type")) types &= types_named(*given, location);
    if (const Json* other = find_key(*schema, "not")) types &= ~types_forbidden(*other, location);
  }
  return types;
}

Types generated_types(const Conjunction& all, const SchemaLocation& location) {
  const Types allowed = allowed_types(all, location);
  Types implied = 0;
  for (const Json* schema : all) {
    if (schema->contains("type")) return allowed;
    for (const TypeWords& type : kTypes)
      if (has_keyword(*schema, type.types)) implied |= type.types;
  }
  return implied == 0 ? allowed : allowed & implied;
}

std::optional<int64_t> largest_count(const Conjunction& all, const char* key,
                                     const SchemaLocation& location) {
  std::optional<int64_t> largest;
  for (const Json* schema : all)
    if (const Json* found = find_key(*schema, key))
      largest = std::max(largest.value_or(0), count_of(*found, key, location));
  return largest;
}

std::optional<int64_t> smallest_count(const Conjunction& all, const char* key,
                                      const SchemaLocation& location) {
  std::optional<int64_t> smallest;
  for (const Json* schema : all)
    if (const Json* found = find_key(*schema, key))
      smallest = std::min(smallest.value_or(kMostRepeats), count_of(*found, key, location));
  return smallest;
}

std::optional<NumberBound> lower_bound(const Conjunction& all, const SchemaLocation& location) {
  return bound(all, "minimum", "exclusiveMinimum", std::strong_ordering::greater, location);
}

std::optional<NumberBound> upper_bound(const Conjunction& all, const SchemaLocation& location) {
  return bound(all, "maximum", "exclusiveMaximum", std::strong_ordering::less, location);
}

std::vector<PropertyName> names_of(const Conjunction& all, const SchemaTree& tree,
                                   const SchemaLocation& location) {
  std::map<std::string_view, size_t> indices;
  std::vector<PropertyName> names;
  std::set<std::string_view> missing;
  const auto check_number = [&](size_t number) {
    if (number > kMostProperties)
      refuse_schema(location, fmt::format("{} properties and required names; expected at most {}",
                                          number, kMostProperties));
  };
  for (const Json* schema : all) {
    const Json* const given = find_key(*schema, "properties");
    if (given == nullptr) continue;
    if (!given->is_object())
      refuse_schema(location, "properties is not an object; expected an object of schemas");
    check_number(given->size());
    for (const std::string_view name : tree.keys(*given))
      if (indices.emplace(name, names.size()).second) names.push_back({name, false});
    check_number(names.size() + missing.size());
  }
  for (const Json* schema : all) {
    const Json* const required = find_key(*schema, "required");
    if (required == nullptr) continue;
    if (!required->is_array())
      refuse_schema(location, "required is not an array; expected an array of names");
    check_number(required->size());
    for (const Json& name : *required) {
      if (!name.is_string())
        refuse_schema(location, "required is not an array of names; expected strings");
      const auto known = indices.find(name.get_ref<const std::string&>());
      if (known != indices.end())
        names[known->second].required = true;
      else
        missing.insert(name.get_ref<const std::string&>());
    }
    check_number(names.size() + missing.size());
  }
  for (const std::string_view name : missing) names.push_back({name, true});
  return names;
}

Conjunction value_of(const Conjunction& all, std::string_view name, const Conjunction& matching) {
  Conjunction value;
  bool named = false;
  for (const Json* schema : all) {
    const Json* const properties = find_key(*schema, "properties");
    const bool here = properties != nullptr && properties->contains(name);
    const bool matches = !matching.empty() && schema->contains("patternProperties");
    if (here) value.push_back(&*properties->find(name));
    if (matches) value.insert(value.end(), matching.begin(), matching.end());
    named = named || here || matches;
    const Json* const other = find_key(*schema, "additionalProperties");
    if (!here && !matches && other != nullptr) value.push_back(other);
  }
  for (const Json* schema : all)
    if (const Json* other = find_key(*schema, "unevaluatedProperties"); other && !named)
      value.push_back(other);
  return value;
}

Conjunction other_values(const Conjunction& all) {
  Conjunction value;
  for (const Json* schema : all)
    for (const char* key : {"additionalProperties", "unevaluatedProperties"})
      if (const Json* other = find_key(*schema, key)) value.push_back(other);
  return value;
}

bool has_patterns(const Conjunction& all) {
  return std::ranges::any_of(
      all, [](const Json* schema) { return schema->contains("patternProperties"); });
}

bool names_others(const Conjunction& all) {
  const Conjunction values = other_values(all);
  return has_patterns(all) ||
         (!values.empty() &&
          std::ranges::none_of(values, [](const Json* each) { return *each == false; }));
}

bool requires_name(const Conjunction& all, std::string_view name) {
  return std::ranges::any_of(all, [&](const Json* schema) {
    const Json* const required = find_key(*schema, "required");
    return required != nullptr && required->is_array() &&
           std::count(required->begin(), required->end(), Json(name)) > 0;
  });
}

}  // namespace fovea::text
