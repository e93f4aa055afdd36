#include "grammar/schema_ways.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <utility>

namespace fovea {
namespace {

using Json = SchemaTree::Json;

// Far above those of real schemas, but expanded in tenths of a second.
constexpr size_t kMostWays = 1000, kMostNested = 100;
constexpr int64_t kMostWork = 1'000'000;
constexpr int kMostDepth = 4;

bool contains(const Conjunction& all, const Json* schema) {
  return std::find(all.begin(), all.end(), schema) != all.end();
}

void append(std::vector<Conjunction>& all, std::vector<Conjunction>&& more) {
  std::ranges::move(more, std::back_inserter(all));
}

// Returns whether `unevaluatedProperties` or `unevaluatedItems` restricts anything: they depend on
// the other schemas of the value.
bool has_unevaluated(const Json& schema) {
  for (const char* key : {"unevaluatedProperties", "unevaluatedItems"})
    if (const Json* found = find_key(schema, key); found != nullptr && *found != true) return true;
  return false;
}

void refuse_unevaluated(const Place& place) {
  refuse_keyword(place,
                 "unevaluatedProperties and unevaluatedItems are supported only in a schema that "
                 "is not combined with those outside of it");
}

}  // namespace

const Json& SchemaWays::list(const Json& schema, const char* key, const Place& place) const {
  const Json& all = *find_key(schema, key);
  if (!all.is_array() || all.empty())
    refuse_schema({&place, key}, "is invalid; expected a non-empty array of schemas");
  return all;
}

const Json& SchemaWays::target(const Json& schema, const Place& place) const {
  const Json& pointer = *find_key(schema, "$ref");
  if (!pointer.is_string()) refuse_schema(place, "$ref is not a string; expected \"#/$defs/NAME\"");
  const auto& text = pointer.get_ref<const std::string&>();
  if (text.empty() || text[0] != '#')
    refuse_schema(place, "$ref leads out of the schema; expected \"#/$defs/NAME\"");
  try {
    return tree_.root().at(Json::json_pointer(text.substr(1)));
  } catch (const Json::exception&) {
    refuse_schema(place, "$ref has no target in the schema; expected \"#/$defs/NAME\"");
  }
}

std::vector<Conjunction> SchemaWays::of(const Conjunction& schemas, const Place& place) {
  const auto restricts = [](const Json* schema) { return *schema != true; };
  const auto unevaluated = [](const Json* schema) {
    return schema->is_object() && has_unevaluated(*schema);
  };
  if (std::ranges::count_if(schemas, restricts) > 1 && std::ranges::any_of(schemas, unevaluated))
    refuse_unevaluated(place);
  Ways all = {{}};
  for (const Json* schema : schemas) {
    Ways next;
    for (const Conjunction& way : all) append(next, with(way, *schema, place));
    all = std::move(next);
  }
  return all;
}

// Returns the ways to satisfy `schema` besides the schemas `before`. A schema that contains itself
// in place adds no way.
SchemaWays::Ways SchemaWays::with(const Conjunction& before, const Json& schema,
                                  const Place& place) {
  if (schema == true) return {before};
  if (schema == false || contains(open_, &schema)) return {};
  if (!schema.is_object())
    refuse_schema(place, "is not a schema that a value can satisfy; expected an object");
  if (contains(before, &schema)) return {before};
  if (!before.empty() && has_unevaluated(schema)) refuse_unevaluated(place);
  work_ += 1 + std::ssize(before);
  if (work_ > kMostWork || open_.size() > kMostNested)
    refuse_keyword(place,
                   "too many combinations of schemas; expected fewer of allOf, anyOf, oneOf");
  check_keywords(schema, place);
  open_.push_back(&schema);
  Conjunction first = before;
  first.push_back(&schema);
  Ways all = {std::move(first)};
  if (schema.contains("$ref")) {
    const Json& used = target(schema, place);
    Ways next;
    for (const Conjunction& way : all) append(next, with(way, used, place));
    all = std::move(next);
  }
  for (const char* key : {"allOf", "anyOf", "oneOf"})
    if (schema.contains(key)) all = with_each(std::move(all), schema, key, place);
  open_.pop_back();
  return all;
}

SchemaWays::Ways SchemaWays::with_each(Ways all, const Json& schema, const char* key,
                                       const Place& place) {
  const Json& parts = list(schema, key, place);
  const bool together = std::string_view(key) == "allOf";
  std::vector<Ways> ways;  // by part; of allOf, those of all parts so far
  for (const Json& part : parts) {
    const Ways& from = together && !ways.empty() ? ways.back() : all;
    Ways next;
    for (const Conjunction& way : from) append(next, with(way, part, place));
    if (together) ways.clear();
    ways.push_back(std::move(next));
    if (ways.back().size() > kMostWays)
      refuse_keyword(
          place, fmt::format("{} has too many combinations; expected at most {}", key, kMostWays));
  }
  if (std::string_view(key) == "oneOf" && depth_ == 0) check_exclusive(ways, parts, place);
  Ways joined;
  for (Ways& each : ways) append(joined, std::move(each));
  return joined;
}

void SchemaWays::check_exclusive(const Json& one_of, const Place& place) {
  std::vector<Ways> generated;
  for (const Json& part : one_of) generated.push_back(of({&part}, place));
  check_exclusive(generated, one_of, place);
}

void SchemaWays::check_exclusive(const std::vector<Ways>& generated, const Json& one_of,
                                 const Place& place) {
  for (size_t j = 0; j < one_of.size(); ++j) {
    const Ways alone = of({&one_of[j]}, place);
    for (size_t i = 0; i < generated.size(); ++i) {
      if (i == j) continue;
      for (const Conjunction& a : generated[i])
        for (const Conjunction& b : alone)
          if (!excludes(a, b, place))
            refuse_keyword(
                place,
                fmt::format("oneOf: a value may satisfy its schemas {} and {}; expected schemas "
                            "that exclude each other, such as by different constants of a "
                            "required property, or anyOf",
                            i, j));
    }
  }
}

// Returns whether no text that is generated for `generated` satisfies `other`; false if that is not
// certain.
bool SchemaWays::excludes(const Conjunction& generated, const Conjunction& other,
                          const Place& place) {
  work_ += std::ssize(generated) + std::ssize(other);
  if (work_ > kMostWork || depth_ > kMostDepth) return false;
  const auto values = literals_of(generated, place), others = literals_of(other, place);
  const Types types = generated_types(generated, place) & allowed_types(other, place);
  if (values) {
    return std::ranges::all_of(*values, [&](const Json* value) {
      const bool listed = !others || std::ranges::any_of(*others, [&](const Json* each) {
        return *each == *value;
      });
      return !listed || (type_of(*value) & types) == 0;
    });
  }
  if (others) {
    return std::ranges::all_of(*others,
                               [&](const Json* value) { return (type_of(*value) & types) == 0; });
  }
  for (Types type = 1; type < kEveryType; type <<= 1)
    if ((types & type) != 0 && !excludes_type(type, generated, other, place)) return false;
  return true;
}

bool SchemaWays::excludes_type(Types type, const Conjunction& generated, const Conjunction& other,
                               const Place& place) {
  const auto above = [](const auto& least, const auto& most) {
    if (!least || !most) return false;
    const double low = std::stod(least->number), high = std::stod(most->number);
    return low > high || (low == high && (least->exclusive || most->exclusive));
  };
  if ((type & kNumberType) != 0)
    return above(lower_bound(generated, place), upper_bound(other, place)) ||
           above(lower_bound(other, place), upper_bound(generated, place));
  if (type == kStringType)
    return largest_count(generated, "minLength", place) >
               smallest_count(other, "maxLength", place).value_or(1 << 30) ||
           largest_count(other, "minLength", place) >
               smallest_count(generated, "maxLength", place).value_or(1 << 30);
  return type == kObjectType && excludes_object(generated, other, place);
}

// An object with named properties is generated with these names only.
bool SchemaWays::excludes_object(const Conjunction& generated, const Conjunction& other,
                                 const Place& place) {
  const std::vector<PropertyName> names = names_of(generated, tree_, place);
  if (names.empty()) return false;
  for (const PropertyName& theirs : names_of(other, tree_, place)) {
    const auto same = [&](const PropertyName& ours) { return ours.name == theirs.name; };
    if (theirs.required && std::ranges::none_of(names, same)) return true;
  }
  std::vector<const Json*> outside;
  std::swap(open_, outside);
  ++depth_;
  const bool different = std::ranges::any_of(names, [&](const PropertyName& ours) {
    if (!ours.required) return false;
    const Ways mine = of(value_of(generated, ours.name), place);
    const Ways theirs = of(value_of(other, ours.name), place);
    return std::ranges::all_of(mine, [&](const Conjunction& a) {
      return std::ranges::all_of(theirs,
                                 [&](const Conjunction& b) { return excludes(a, b, place); });
    });
  });
  --depth_;
  std::swap(open_, outside);
  return different;
}

}  // namespace fovea
