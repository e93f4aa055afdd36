#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "fovea/text/json_grammar.h"

namespace fovea::serve {

class ServedModel;

// One description of the text that a request demands.
struct Guide {
  enum class Kind { json_object, schema, grammar, regex, choices, ids };
  Kind kind = Kind::json_object;
  std::string field;      // of the request, for errors
  std::string text = {};  // of schema, grammar and regex
  std::vector<std::string> choices = {};
  std::vector<int32_t> ids = {};  // the only tokens of the text
};

// Returns the constraint of a guide for at most `most` tokens. Throws the library's errors.
text::Constraint constraint_of(const Guide& guide, ServedModel& model, int64_t most);

}  // namespace fovea::serve
