#pragma once

#include <string>
#include <vector>

#include "calls/call_reader.h"
#include "grammar/json_schema.h"

namespace fovea::text {

// Returns the grammar of a section of calls of these functions: one, or one and more. If the
// schema of a function has a keyword that cannot be enforced, any arguments are allowed, and the
// reason is appended to `warnings`. Throws the errors of schemas for functions that are `strict`.
SchemaGrammar call_grammar(const CallFormat& format, const std::vector<CallableFunction>& functions,
                           bool only_one, const Grammar::Bytes& usable,
                           std::vector<std::string>& warnings);

}  // namespace fovea::text
