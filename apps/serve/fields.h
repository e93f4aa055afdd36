#pragma once

#include <functional>
#include <string>
#include <vector>

#include "serve/request.h"

namespace fovea::serve {

// The kinds of requests that have a field, as bits.
enum : unsigned {
  kChat = 1,
  kCompletion = 2,
  kTokenize = 4,
  kDetokenize = 8,
  kEmbeddings = 16,
  kEmbed = 32,
  kRerank = 64,
  kTranslate = 128,
  kJob = 256,
  kClassify = 512,
  kPredict = 1024,
  kScore = 2048,
  kRanks = 4096,
  kSimilarity = 8192,
  kSparse = 16384,
  kAllTokens = 32768,
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

// One field of a request, as used by validation, tests and documentation. A missing or null field
// keeps its default.
struct Field {
  std::string name;  // "a.b" is the field b of the object a; the entry of a precedes it
  unsigned of = 0;   // kChat | ...
  FieldType type = FieldType::any;
  // Inclusive bounds: of a number's value, a list's length, a text's bytes, or the values of
  // biases.
  double least = 0, most = 0;
  // The default, for documentation; "model" = option, generation_config.json or program default.
  std::string initial = {};
  std::string help = {};
  std::function<void(const Json& value, ApiRequest& request)> put = {};
  bool required = false;
};

const std::vector<Field>& fields();
std::vector<Field> guide_fields();           // those that restrict the generated text
std::vector<Field> classification_fields();  // of classifiers and scores of pairs
std::vector<Field> tuning_fields();          // those of fine-tuning jobs, which are among fields()
// Throws ApiError if a request for a job has options of another method than its own.
void check_methods(const ApiRequest& request);

// Reads the fields of request kind `of` from `body`. Unknown fields are ignored here,
// since clients of other servers send many. `vocabulary` bounds token ids. Throws ApiError, with
// the field's name as `param`, if a value is invalid.
void read_fields(const Json& body, unsigned of, int64_t vocabulary, ApiRequest& request);
// Returns the keys of `body` that are no fields of these requests.
std::vector<std::string> unknown_keys(const Json& body, unsigned of);

// Returns the table as JSON, for tests and documentation.
std::string fields_json();

}  // namespace fovea::serve
