#include "grammar/schema_ways.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <iterator>
#include <unordered_map>
#include <utility>

#include "grammar/number_order.h"
#include "grammar/schema_literals.h"
#include "grammar/schema_negation.h"

namespace fovea::text {
namespace {

using Json = SchemaTree::Json;

// Far above those of real schemas.
constexpr size_t kMostWays = 1000, kMostNested = 100;
constexpr int kMostDepth = 4;
// Steps of work: to compare two schemas or a name of their properties, and to copy a value.
constexpr size_t kStepsOfComparison = 100, kStepsOfName = 4, kStepsOfCopy = 4;

bool contains(const Conjunction& all, const Json* schema) {
  return std::find(all.begin(), all.end(), schema) != all.end();
}

void append(std::vector<Conjunction>& all, std::vector<Conjunction>&& more) {
  std::ranges::move(more, std::back_inserter(all));
}

size_t values_in(const Json& schema) {
  size_t values = 1;
  if (schema.is_structured())
    for (const Json& part : schema) values += values_in(part);
  return values;
}

// Returns whether `unevaluatedProperties` or `unevaluatedItems` restricts anything: they depend on
// the other schemas of the value.
bool has_unevaluated(const Json& schema) {
  for (const char* key : {"unevaluatedProperties", "unevaluatedItems"})
    if (const Json* found = find_key(schema, key); found != nullptr && *found != true) return true;
  return false;
}

void refuse_unevaluated(const SchemaLocation& location) {
  refuse_keyword(location,
                 "unevaluatedProperties and unevaluatedItems are supported only in a schema that "
                 "is not combined with those outside of it");
}

// Returns the text of a part of a URI (RFC 3986): %20 is a space. Other uses of % stay.
std::string percent_decoded(const std::string& text) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    unsigned value = 0;
    const char* const digits = text.data() + i + 1;
    const bool escaped = text[i] == '%' && i + 2 < text.size() &&
                         std::from_chars(digits, digits + 2, value, 16).ptr == digits + 2;
    out += escaped ? static_cast<char>(value) : text[i];
    if (escaped) i += 2;
  }
  return out;
}

}  // namespace

const Json& SchemaWays::list(const Json& schema, const char* key,
                             const SchemaLocation& location) const {
  const Json& all = *find_key(schema, key);
  if (!all.is_array() || all.empty())
    refuse_schema({&location, key}, "is invalid; expected a non-empty array of schemas");
  return all;
}

const Json& SchemaWays::target(const Json& schema, const SchemaLocation& location) const {
  const Json& pointer = *find_key(schema, "$ref");
  if (!pointer.is_string())
    refuse_schema(location, "$ref is not a string; expected \"#/$defs/NAME\"");
  const auto& text = pointer.get_ref<const std::string&>();
  if (text.empty() || text[0] != '#')
    refuse_schema(location, "$ref leads out of the schema; expected \"#/$defs/NAME\"");
  try {
    return tree_.root().at(Json::json_pointer(percent_decoded(text.substr(1))));
  } catch (const Json::exception&) {
    refuse_schema(location, "$ref has no target in the schema; expected \"#/$defs/NAME\"");
  }
}

std::vector<Conjunction> SchemaWays::of(const Conjunction& schemas,
                                        const SchemaLocation& location) {
  const auto restricts = [](const Json* schema) { return *schema != true; };
  const auto unevaluated = [](const Json* schema) {
    return schema->is_object() && has_unevaluated(*schema);
  };
  if (std::ranges::count_if(schemas, restricts) > 1 && std::ranges::any_of(schemas, unevaluated))
    refuse_unevaluated(location);
  Ways all = {{}};
  for (const Json* schema : schemas) {
    Ways next;
    for (const Conjunction& way : all) append(next, with(way, *schema, location));
    all = std::move(next);
  }
  return all;
}

// Returns the ways to satisfy `schema` besides the schemas `before`. A schema that contains itself
// in place adds no way.
SchemaWays::Ways SchemaWays::with(const Conjunction& before, const Json& schema,
                                  const SchemaLocation& location) {
  if (schema == true) return {before};
  if (schema == false || contains(open_, &schema)) return {};
  if (!schema.is_object())
    refuse_schema(location, "is not a schema that a value can satisfy; expected an object");
  if (contains(before, &schema)) return {before};
  if (!before.empty() && has_unevaluated(schema)) refuse_unevaluated(location);
  work_.add(1 + before.size() + schema.size(), location);
  if (open_.size() > kMostNested)
    refuse_keyword(location,
                   "schemas are nested too deeply; expected fewer of allOf, anyOf, oneOf");
  check_keywords(schema, location);
  open_.push_back(&schema);
  Conjunction first = before;
  first.push_back(&schema);
  Ways all = {std::move(first)};
  if (schema.contains("$ref")) {
    const Json& used = target(schema, location);
    Ways next;
    for (const Conjunction& way : all) append(next, with(way, used, location));
    all = std::move(next);
  }
  for (const char* key : {"allOf", "anyOf", "oneOf"})
    if (schema.contains(key)) all = with_each(all, schema, key, location);
  if (has_condition(schema)) all = with_conditions(std::move(all), schema, location);
  open_.pop_back();
  return all;
}

SchemaWays::Ways SchemaWays::with_each(const Ways& all, const Json& schema, const char* key,
                                       const SchemaLocation& location) {
  const Json& parts = list(schema, key, location);
  const bool together = std::string_view(key) == "allOf";
  std::vector<Ways> ways;  // by part; of allOf, those of all parts so far
  for (const Json& part : parts) {
    const Ways& from = together && !ways.empty() ? ways.back() : all;
    Ways next;
    for (const Conjunction& way : from) append(next, with(way, part, location));
    if (together) ways.clear();
    ways.push_back(std::move(next));
    if (ways.back().size() > kMostWays)
      refuse_keyword(location, fmt::format("{} has too many combinations; expected at most {}", key,
                                           kMostWays));
  }
  if (std::string_view(key) == "oneOf" && depth_ == 0) check_exclusive(ways, parts, location);
  Ways joined;
  for (Ways& each : ways) append(joined, std::move(each));
  return joined;
}

// Adds if, then and else, not, and what a property requires, each as alternatives of schemas.
SchemaWays::Ways SchemaWays::with_conditions(Ways all, const Json& schema,
                                             const SchemaLocation& location) {
  for (const Conjunction& way : all)
    if (std::ranges::any_of(way, [](const Json* each) { return has_unevaluated(*each); }))
      refuse_unevaluated(location);
  auto known = conditions_.find(&schema);
  if (known == conditions_.end()) {
    work_.add(kStepsOfCopy * values_in(schema), location);
    std::vector<const Json*> schemas;
    for (Json& alternatives : conditions_of(schema, location))
      schemas.push_back(&tree_.add(std::move(alternatives)));
    known = conditions_.emplace(&schema, std::move(schemas)).first;
  }
  const std::vector<const Json*> schemas = known->second;
  for (const Json* alternatives : schemas) all = with_each(all, *alternatives, "anyOf", location);
  return all;
}

void SchemaWays::check_exclusive(const Json& one_of, const SchemaLocation& location) {
  std::vector<Ways> generated;
  for (const Json& part : one_of) generated.push_back(of({&part}, location));
  check_exclusive(generated, one_of, location);
}

void SchemaWays::check_exclusive(const std::vector<Ways>& generated, const Json& one_of,
                                 const SchemaLocation& location) {
  std::vector<Ways> alone;
  for (const Json& part : one_of) alone.push_back(of({&part}, location));
  if (have_own_values(alone, location) || have_own_tags(generated, alone, location)) return;
  for (size_t j = 0; j < one_of.size(); ++j) {
    for (size_t i = 0; i < one_of.size(); ++i) {
      if (i == j) continue;
      for (const Conjunction& a : generated[i])
        for (const Conjunction& b : alone[j])
          if (!excludes(a, b, location))
            refuse_keyword(
                location,
                fmt::format("oneOf: a value may satisfy its schemas {} and {}; expected schemas "
                            "that exclude each other, such as by different constants of a "
                            "required property, or anyOf",
                            i, j));
    }
  }
}

// Returns whether each part allows only literals that no other part allows.
bool SchemaWays::have_own_values(const std::vector<Ways>& parts, const SchemaLocation& location) {
  std::unordered_map<std::string, size_t> owners;
  for (size_t i = 0; i < parts.size(); ++i) {
    for (const Conjunction& way : parts[i]) {
      const auto values = literals_of(way, work_, location);
      if (!values) return false;
      work_.add(kStepsOfValue * values->size(), location);
      for (const Json* value : *values)
        if (owners.emplace(literal_key(*value), i).first->second != i) return false;
    }
  }
  return true;
}

// Returns whether the parts are objects that a required property with different literals tells
// apart. Far faster than comparing each part with each.
bool SchemaWays::have_own_tags(const std::vector<Ways>& generated, const std::vector<Ways>& alone,
                               const SchemaLocation& location) {
  for (const Ways& ways : generated)
    for (const Conjunction& way : ways)
      if (generated_types(way, location) != kObjectType) return false;
  if (alone.empty() || alone[0].empty()) return false;
  for (const PropertyName& tag : names_of(alone[0][0], tree_, location))
    if (tag.required && have_own_values(values_of_tag(alone, tag.name, location), location))
      return true;
  return false;
}

// Returns the ways to satisfy a property of each part; an empty conjunction if it may be missing.
std::vector<SchemaWays::Ways> SchemaWays::values_of_tag(const std::vector<Ways>& parts,
                                                        std::string_view name,
                                                        const SchemaLocation& location) {
  std::vector<const Json*> outside;
  std::swap(open_, outside);
  ++depth_;
  std::vector<Ways> values;
  for (const Ways& part : parts) {
    values.emplace_back();
    for (const Conjunction& way : part) {
      work_.add(kStepsOfComparison, location);
      if (!requires_name(way, name) || has_patterns(way) || depth_ > kMostDepth)
        values.back().emplace_back();
      else
        append(values.back(), of(value_of(way, name), location));
    }
  }
  --depth_;
  std::swap(open_, outside);
  return values;
}

// Returns whether no text that is generated for `generated` satisfies `other`; false if that is not
// certain.
bool SchemaWays::excludes(const Conjunction& generated, const Conjunction& other,
                          const SchemaLocation& location) {
  work_.add(kStepsOfComparison + generated.size() + other.size(), location);
  if (depth_ > kMostDepth) return false;
  const auto values = literals_of(generated, work_, location),
             others = literals_of(other, work_, location);
  const Types types = generated_types(generated, location) & allowed_types(other, location);
  const auto of_other_type = [&](const Json* value) { return (type_of(*value) & types) == 0; };
  if (values && others) {
    work_.add(kStepsOfValue * (values->size() + others->size()), location);
    LiteralKeys keys;
    for (const Json* value : *others) keys.insert(literal_key(*value));
    return std::ranges::all_of(*values, [&](const Json* value) {
      return of_other_type(value) || !keys.contains(literal_key(*value));
    });
  }
  if (values || others) return std::ranges::all_of(values ? *values : *others, of_other_type);
  for (Types type = 1; type < kEveryType; type <<= 1)
    if ((types & type) != 0 && !excludes_type(type, generated, other, location)) return false;
  return true;
}

bool SchemaWays::excludes_type(Types type, const Conjunction& generated, const Conjunction& other,
                               const SchemaLocation& location) {
  const auto above = [](const auto& least, const auto& most) {
    if (!least || !most) return false;
    const auto order = compare_numbers(least->number, most->number);
    return std::is_gt(order) || (std::is_eq(order) && (least->exclusive || most->exclusive));
  };
  if ((type & kNumberType) != 0)
    return above(lower_bound(generated, location), upper_bound(other, location)) ||
           above(lower_bound(other, location), upper_bound(generated, location));
  if (type == kStringType)
    return largest_count(generated, "minLength", location) >
               smallest_count(other, "maxLength", location).value_or(1 << 30) ||
           largest_count(other, "minLength", location) >
               smallest_count(generated, "maxLength", location).value_or(1 << 30);
  return type == kObjectType && excludes_object(generated, other, location);
}

// An object with named properties is generated with these names only, unless other names are
// allowed explicitly.
bool SchemaWays::excludes_object(const Conjunction& generated, const Conjunction& other,
                                 const SchemaLocation& location) {
  if (has_patterns(generated) || has_patterns(other)) return false;
  const std::vector<PropertyName> names = names_of(generated, tree_, location);
  if (names.empty()) return false;
  const std::vector<PropertyName> their_names = names_of(other, tree_, location);
  work_.add(kStepsOfName * (names.size() + their_names.size()), location);
  for (const PropertyName& theirs : their_names) {
    if (!theirs.required || names_others(generated)) continue;
    work_.add(names.size(), location);
    const auto same = [&](const PropertyName& ours) { return ours.name == theirs.name; };
    if (std::ranges::none_of(names, same)) return true;
  }
  std::vector<const Json*> outside;
  std::swap(open_, outside);
  ++depth_;
  const bool different = std::ranges::any_of(names, [&](const PropertyName& ours) {
    if (!ours.required) return false;
    const Ways mine = of(value_of(generated, ours.name), location);
    const Ways theirs = of(value_of(other, ours.name), location);
    return std::ranges::all_of(mine, [&](const Conjunction& a) {
      return std::ranges::all_of(theirs,
                                 [&](const Conjunction& b) { return excludes(a, b, location); });
    });
  });
  --depth_;
  std::swap(open_, outside);
  return different;
}

}  // namespace fovea::text
