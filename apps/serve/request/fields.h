#pragma once

#include <concepts>
#include <functional>
#include <string>
#include <vector>

#include "serve/request/request.h"

namespace fovea::serve {

enum class FieldType {
  boolean,
  integer,
  number,
  text,
  stops,     // a string or an array of short strings
  strings,   // an array of strings
  texts,     // a string or an array of strings
  ids,       // an array of token ids
  prompts,   // a string, token ids, or an array of either
  biases,    // an object that maps token ids to numbers
  messages,  // an array of objects with a role
  array,
  object,
  automatic_integer,  // an integer or "auto"
  automatic_number,   // a number or "auto"
  any,
};

// What is known of a field of a request, as used by validation, tests and documentation. A missing
// or null field keeps its default.
struct FieldInfo {
  std::string name;  // "a.b" is the field b of the object a; the entry of a precedes it
  FieldType type = FieldType::any;
  // Inclusive bounds: of a number's value, a list's length, a text's bytes, or the values of
  // biases.
  double least = 0, most = 0;
  // The default, for documentation; "model" = option, generation_config.json or program default.
  std::string initial = {};
  std::string help = {};
  bool required = false;

  bool operator==(const FieldInfo&) const = default;
};

// A field of a request, and how its value, which has been checked, is stored.
template <class Request>
struct Field {
  using Put = std::function<void(const Json& value, Request& request)>;
  Field(FieldInfo about, Put store) : info(std::move(about)), put(std::move(store)) {}
  // A field of a base is one of the request.
  template <class Base>
    requires(std::derived_from<Request, Base> && !std::same_as<Request, Base>)
  Field(const Field<Base>& field) : info(field.info), put(field.put) {}

  FieldInfo info;
  Put put;
};
template <class Request>
using Fields = std::vector<Field<Request>>;

// The fields of a request, in the order in which they are read. Each struct of request.h with a
// kPath has a specialisation.
template <class Request>
const Fields<Request>& fields_of();

struct RouteFields {
  const char* path;
  std::vector<FieldInfo> fields;
};
const std::vector<RouteFields>& routes_with_fields();
// Those of one route, by its kPath.
const std::vector<FieldInfo>& fields_of_route(const char* path);

// Returns the checked value of a field, or null if it is missing. `vocabulary` bounds token ids.
// Throws ApiError, with the field's name as `param`, if the value is invalid or required.
const Json* checked_value(const Json& body, const FieldInfo& field, int64_t vocabulary);

// Reads the fields of a request from `body`. Unknown fields are ignored here, since clients of
// other servers send many. Throws ApiError like checked_value().
template <class Request>
void read_fields(const Json& body, int64_t vocabulary, Request& request) {
  for (const Field<Request>& field : fields_of<Request>())
    if (const Json* value = checked_value(body, field.info, vocabulary)) field.put(*value, request);
}
// Returns the keys of `body` that are none of the fields.
std::vector<std::string> unknown_keys(const Json& body, const std::vector<FieldInfo>& fields);

// The fields that restrict the generated text.
Fields<GenerationRequest> guide_fields();
// Returns the metadata of a job or a batch. Throws ApiError if they are not short texts.
Json checked_metadata(const Json& value);
// Throws ApiError if a request for a job has options of another method than its own.
void check_methods(const FineTuningRequest& request);

// Returns the fields of all routes as JSON, for tests and documentation.
std::string fields_json();

}  // namespace fovea::serve
