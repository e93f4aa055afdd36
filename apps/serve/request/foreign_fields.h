#pragma once

#include <string>

#include "serve/request/api_error.h"
#include "serve/request/fields.h"

namespace fovea::serve {

// A field of another server that changes nothing here, and is named in a warning.
template <class Request>
Field<Request> ignored_field(const std::string& name, const std::string& help) {
  return {
      {name, FieldType::any, 0, 0, "none", help + "; ignored"},
      [name](const Json&, Request& request) { request.warnings.push_back(name + " is ignored"); }};
}

// A field that would change the result, and has no counterpart here.
template <class Request>
Field<Request> refused_field(const std::string& name, const std::string& help,
                             const std::string& instead) {
  return {{name, FieldType::any, 0, 0, "none", help + "; refused"},
          [name, instead](const Json& value, Request&) {
            if (!is_neutral(value)) refuse_value(name, "none; " + instead);
          }};
}

// The number of tokens to which the penalties of llama.cpp and Ollama apply.
Field<GenerationRequest> penalty_window_field(const std::string& name);

// A seed of -1 is a random one.
void put_seed_or_random(const Json& value, GenerationRequest& request);

}  // namespace fovea::serve
