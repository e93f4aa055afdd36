#pragma once

#include <string>

#include "serve/request/fields.h"

namespace fovea::serve {

// Throws ApiError 400 for the value of a field.
[[noreturn]] inline void refuse_value(const std::string& field, const std::string& expected) {
  throw ApiError{400, field + ": expected " + expected, field, "invalid_value"};
}

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

}  // namespace fovea::serve
