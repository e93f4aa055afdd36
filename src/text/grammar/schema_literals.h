#pragma once

#include <optional>
#include <string>
#include <unordered_set>

#include "grammar/schema_parts.h"
#include "grammar/schema_work.h"

namespace fovea::text {

using LiteralKeys = std::unordered_set<std::string>;

constexpr size_t kStepsOfValue = 8;  // to make its key

// Returns a text that is the same for values that JSON Schema holds for equal, such as 1 and 1.0.
std::string literal_key(const SchemaTree::Json& value);

// Returns the values of `enum` and `const` that all schemas allow; unset without such a keyword.
std::optional<Conjunction> literals_of(const Conjunction& all, SchemaWork& work,
                                       const SchemaLocation& location);

// Returns the values of a `not` that has only `enum` or `const`; nullptr if it has other keywords.
const SchemaTree::Json* excluded_literals(const SchemaTree::Json& not_schema);
// Returns the values that a `not` of the schemas excludes.
Conjunction exclusions_of(const Conjunction& all, const SchemaLocation& location);

// Returns whether a value of a literal satisfies the other keywords. Throws Unsupported if that
// cannot be decided.
bool satisfies(const SchemaTree::Json& value, const Conjunction& all,
               const SchemaLocation& location);

}  // namespace fovea::text
