#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace fovea::serve {

// One description of the text that a request demands.
struct Guide {
  enum class Kind { json_object, schema, grammar, regex, choices, ids };
  Kind kind = Kind::json_object;
  std::string field;      // of the request, for errors
  std::string text = {};  // of schema, grammar and regex
  std::vector<std::string> choices = {};
  std::vector<int32_t> ids = {};  // the only tokens of the text
};

}  // namespace fovea::serve
