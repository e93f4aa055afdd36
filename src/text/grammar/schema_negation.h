#pragma once

#include <vector>

#include "grammar/schema_parts.h"

namespace fovea::text {

// Returns whether the schema has if with then or else, dependentRequired, dependentSchemas,
// dependencies, or a `not` that allowed_types() and exclusions_of() do not read.
bool has_condition(const SchemaTree::Json& schema);

// Returns these keywords as schemas {"anyOf": [...]}, all of which a value must satisfy.
std::vector<SchemaTree::Json> conditions_of(const SchemaTree::Json& schema,
                                            const SchemaLocation& location);

}  // namespace fovea::text
