#include "grammar/schema_negation.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <utility>

#include "grammar/schema_literals.h"

namespace fovea::text {
namespace {

using Json = SchemaTree::Json;

// Limits and their opposites: a number below `minimum` is what exclusiveMaximum allows.
const std::map<std::string, const char*> kOppositeBounds = {{"minimum", "exclusiveMaximum"},
                                                            {"maximum", "exclusiveMinimum"},
                                                            {"exclusiveMinimum", "maximum"},
                                                            {"exclusiveMaximum", "minimum"}};
struct Count {
  const char* opposite;
  int64_t step;
  const char* type;
};
const std::map<std::string, Count> kOppositeCounts = {{"minLength", {"maxLength", -1, "string"}},
                                                      {"maxLength", {"minLength", 1, "string"}},
                                                      {"minItems", {"maxItems", -1, "array"}},
                                                      {"maxItems", {"minItems", 1, "array"}}};

const char* const kDependencies[] = {"dependentRequired", "dependentSchemas", "dependencies"};

Json object_without(const std::string& name) {
  return {{"type", "object"}, {"properties", {{name, false}}}};
}

Json negation(const Json& schema) { return {{"not", schema}}; }

[[noreturn]] void refuse_not(const SchemaLocation& location, const std::string& key) {
  refuse_keyword(location, fmt::format("not, and if with else, are not supported for {}; expected "
                                       "type, const, enum, properties, required or bounds",
                                       key));
}

void negate_count(const Count& count, const Json& given, Json& out) {
  const bool number = given.is_number_unsigned() && given.get<uint64_t>() < (1u << 30);
  const int64_t opposite = (number ? given.get<int64_t>() : 0) + count.step;
  if (number && opposite >= 0) out.push_back({{"type", count.type}, {count.opposite, opposite}});
}

// Adds what satisfies the negation of one keyword.
void negate_keyword(const std::string& key, const Json& given, Json& out,
                    const SchemaLocation& location) {
  if (key == "type" || key == "const" || key == "enum") {
    out.push_back(negation({{key, given}}));
  } else if (key == "required" && given.is_array()) {
    for (const Json& name : given)
      if (name.is_string()) out.push_back(object_without(name));
  } else if (key == "properties" && given.is_object()) {
    for (const auto& [name, value] : given.items())
      out.push_back({{"type", "object"},
                     {"properties", {{name, negation(value)}}},
                     {"required", Json::array({name})}});
  } else if (const auto bound = kOppositeBounds.find(key); bound != kOppositeBounds.end()) {
    out.push_back({{"type", "number"}, {bound->second, given}});
  } else if (const auto count = kOppositeCounts.find(key); count != kOppositeCounts.end()) {
    negate_count(count->second, given, out);
  } else if (key == "not") {
    out.push_back(given);
  } else if (key == "allOf" && given.is_array()) {
    for (const Json& part : given) out.push_back(negation(part));
  } else if (key == "anyOf" && given.is_array()) {
    Json none = Json::array();
    for (const Json& part : given) none.push_back(negation(part));
    out.push_back({{"allOf", std::move(none)}});
  } else {
    refuse_not(location, key);
  }
}

// Returns the schemas of which a value satisfies one exactly if it does not satisfy `schema`.
Json negated(const Json& schema, const SchemaLocation& location) {
  if (schema.is_boolean()) return schema == true ? Json::array() : Json::array({true});
  if (!schema.is_object()) refuse_schema(location, "not is not a schema; expected an object");
  Json out = Json::array();
  for (const auto& [key, given] : schema.items())
    if (restricts_besides({{key, given}}, "")) negate_keyword(key, given, out, location);
  return out;
}

// Returns the schemas of the values without a property, and of those with what it requires.
Json dependency(const std::string& name, const Json& needed) {
  Json with = {{"required", Json::array({name})}};
  if (needed.is_array())
    with["required"].insert(with["required"].end(), needed.begin(), needed.end());
  else
    with["allOf"] = Json::array({needed});
  return {{{"properties", {{name, false}}}}, std::move(with)};
}

bool is_plain_not(const Json& schema) {
  return !schema.is_object() || excluded_literals(schema) != nullptr ||
         (!restricts_besides(schema, "type") && find_key(schema, "type") != nullptr) ||
         !restricts_besides(schema, "");
}

}  // namespace

bool has_condition(const Json& schema) {
  const Json* const other = find_key(schema, "not");
  if (other != nullptr && !is_plain_not(*other)) return true;
  for (const char* key : kDependencies)
    if (schema.contains(key)) return true;
  return schema.contains("if") && (schema.contains("then") || schema.contains("else"));
}

std::vector<Json> conditions_of(const Json& schema, const SchemaLocation& location) {
  std::vector<Json> all;
  const auto add = [&](Json alternatives) { all.push_back({{"anyOf", std::move(alternatives)}}); };
  const Json* const other = find_key(schema, "not");
  if (other != nullptr && !is_plain_not(*other)) add(negated(*other, location));
  for (const char* key : kDependencies) {
    const Json* const given = find_key(schema, key);
    if (given != nullptr && !given->is_object())
      refuse_schema(location, fmt::format("{} is not an object; expected an object of names", key));
    if (given != nullptr)
      for (const auto& [name, needed] : given->items()) add(dependency(name, needed));
  }
  const Json *const test = find_key(schema, "if"), *const then = find_key(schema, "then"),
                    *const otherwise = find_key(schema, "else");
  if (test == nullptr || (then == nullptr && otherwise == nullptr)) return all;
  const auto both = [](const Json& condition, const Json* result) -> Json {
    return {{"allOf", {condition, result != nullptr ? *result : Json(true)}}};
  };
  add({both(*test, then), both(negation(*test), otherwise)});
  return all;
}

}  // namespace fovea::text
