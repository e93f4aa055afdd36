#pragma once

#include <string>
#include <vector>

#include "serve/request.h"

namespace fovea::serve {

// Which requests have a field; bits.
enum : unsigned {
  kChat = 1,
  kCompletion = 2,
  kTokenize = 4,
  kDetokenize = 8,
  kEmbeddings = 16,
  kEmbed = 32,
  kRerank = 64,
  kTranslate = 128,
};
struct FieldsOf {
  unsigned of;
  const char* path;
};
const std::vector<FieldsOf>& routes_with_fields();

enum class FieldType {
  boolean,
  integer,
  number,
  text,
  stops,     // a string, or an array of strings, all short
  strings,   // an array of strings
  texts,     // a string, or an array of strings
  ids,       // an array of token ids
  prompts,   // a string or token ids, or an array of such
  biases,    // an object from token ids to numbers
  messages,  // an array of objects with a role
  array,
  object,
  any,
};

// One field of a request's JSON: all that validation, its tests and the documentation need. An
// absent field and null leave the default.
struct Field {
  const char* name;  // "a.b": the field b of the object a, which has a row of its own before
  unsigned of;       // kChat | ...
  FieldType type;
  // Of a number its value, of a list its length, of a text its bytes; both included. Of biases
  // `least` and `most` bound the values.
  double least, most;
  const char* initial;  // the default, for people; "model" = flag, generation_config.json, program
  const char* help;
  void (*put)(const Json& value, ApiRequest& request);
  bool required = false;
};

const std::vector<Field>& fields();

// Reads what `body` says of the fields of `of`. Fields that the table lacks are ignored: old
// clients send many. `vocabulary` bounds token ids. Throws ApiError with the field as `param`.
void read_fields(const Json& body, unsigned of, int64_t vocabulary, ApiRequest& request);

// The table as JSON, for tests and documentation.
std::string fields_json();

}  // namespace fovea::serve
