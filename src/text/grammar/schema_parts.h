#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "grammar/number_range.h"
#include "grammar/schema_location.h"
#include "grammar/schema_tree.h"

namespace fovea::text {

// Schemas that a value must satisfy together. The functions below read their own keywords; those
// that apply other schemas in place ($ref, allOf, anyOf, oneOf) are expanded by SchemaWays.
using Conjunction = std::vector<const SchemaTree::Json*>;

// Sets of types. A number is an integer or has a fraction.
using Types = unsigned;
constexpr size_t kMostProperties = 2000;
constexpr Types kObjectType = 1, kArrayType = 2, kStringType = 4, kIntegerType = 8,
                kFractionType = 16, kBooleanType = 32, kNullType = 64, kEveryType = 127,
                kNumberType = kIntegerType | kFractionType;

// Returns the value of a key, or nullptr.
const SchemaTree::Json* find_key(const SchemaTree::Json& schema, const char* key);

// Throws Unsupported if the schema has a keyword that restricts values and is not supported.
void check_keywords(const SchemaTree::Json& schema, const SchemaLocation& location);
// Returns whether a keyword, other than those in `except`, restricts values of these types.
bool has_keyword(const SchemaTree::Json& schema, Types types,
                 const std::vector<std::string_view>& except = {});
// Returns whether the schema has a keyword besides `key` that restricts a value.
bool restricts_besides(const SchemaTree::Json& schema, std::string_view key);

Types type_of(const SchemaTree::Json& value);
// Returns the types that `type` and `not` allow.
Types allowed_types(const Conjunction& all, const SchemaLocation& location);
// Returns the types of the values to generate: those allowed, or, if no schema has `type`, those
// that the keywords imply.
Types generated_types(const Conjunction& all, const SchemaLocation& location);

// Returns the largest of the counts with this key (minLength, ...), or the smallest (maxLength,
// ...).
std::optional<int64_t> largest_count(const Conjunction& all, const char* key,
                                     const SchemaLocation& location);
std::optional<int64_t> smallest_count(const Conjunction& all, const char* key,
                                      const SchemaLocation& location);

// Return the closest lower or upper bound of numbers.
std::optional<NumberBound> lower_bound(const Conjunction& all, const SchemaLocation& location);
std::optional<NumberBound> upper_bound(const Conjunction& all, const SchemaLocation& location);

// The named properties of objects.
struct PropertyName {
  std::string_view name;
  bool required;
};
// Returns the properties in the order of the schemas, and then the other required names.
std::vector<PropertyName> names_of(const Conjunction& all, const SchemaTree& tree,
                                   const SchemaLocation& location);
// Returns the schemas of the value with this name. `matching`: those of patternProperties whose
// patterns match the name.
Conjunction value_of(const Conjunction& all, std::string_view name,
                     const Conjunction& matching = {});
// Returns whether names beside those of names_of() are generated: additionalProperties or
// patternProperties allow them explicitly.
bool names_others(const Conjunction& all);
Conjunction other_values(const Conjunction& all);  // the schemas of their values
bool has_patterns(const Conjunction& all);
bool requires_name(const Conjunction& all, std::string_view name);

}  // namespace fovea::text
