#pragma once

#include <functional>
#include <string>

#include "grammar/json_rules.h"
#include "grammar/schema_literals.h"
#include "grammar/schema_ways.h"

namespace fovea::text {

// What the rules of objects and arrays need from the compiler of their schema.
struct SchemaRules {
  Grammar& grammar;
  JsonRules& rules;
  const SchemaTree& tree;
  SchemaWays& ways;
  SchemaWork& work;
  // Returns the rule for the values that satisfy all these schemas.
  std::function<Grammar::Symbol(Conjunction, const SchemaLocation&)> compile;
  // Returns the rule for the strings that match a regular expression.
  std::function<Grammar::Symbol(const std::string& pattern, int64_t least,
                                std::optional<int64_t> most, const SchemaLocation&)>
      matching;
};

// Return the objects and arrays that satisfy all schemas, which apply no others in place.
Grammar::Sequence object_rule(const Conjunction& all, SchemaRules& schema,
                              const SchemaLocation& location);
Grammar::Sequence array_rule(const Conjunction& all, SchemaRules& schema,
                             const SchemaLocation& location);

// Returns the value of a key that the schemas do not give with different values; nullptr if none
// has it.
const SchemaTree::Json* only_value(const Conjunction& all, const char* key,
                                   const SchemaLocation& location);

}  // namespace fovea::text
