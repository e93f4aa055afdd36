#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string_view>
#include <vector>

#include "fovea/tokenizer.h"

namespace fovea {

// What a vocabulary can write, byte by byte. Made once for a model, in a second at most; safe to
// use from any thread.
class JsonVocabulary {
 public:
  // `ends` are the tokens that end a text. InvalidArgument where there is none.
  JsonVocabulary(const Tokenizer& tokenizer, std::vector<int32_t> ends);
  ~JsonVocabulary();

  struct Tokens;
  const Tokens& tokens() const { return *tokens_; }

 private:
  std::unique_ptr<const Tokens> tokens_;
};

// For GenerateOptions::constrain.
using Constraint =
    std::function<void(const std::vector<int32_t>& written, float* logits, int64_t vocabulary)>;

// Lets a model write nothing but one JSON value that keeps `schema`, and then end. Of JSON Schema
// these keywords hold: type, enum, const, properties, required, additionalProperties, items,
// prefixItems, minItems, maxItems, minLength, maxLength, anyOf, oneOf (as anyOf), allOf (of one),
// $ref within the schema, $defs, definitions; others that would restrict the value are refused, and
// notes such as title are ignored, format among them. Properties come in the schema's order. Keys
// that the schema does not name may come twice. "" is any object.
//
// `most_tokens` (-1 = no limit) is what the answer may have: before it is used up the value is
// brought to its shortest end. InvalidArgument for a schema that is refused, that is larger than
// docs/serve.md allows, that nothing satisfies or that the vocabulary cannot write; Unsupported for
// other keywords. The constraint throws InvalidArgument where a schema fits what was written in so
// many ways that a token takes tenths of a second.
Constraint json_constraint(std::shared_ptr<const JsonVocabulary> vocabulary,
                           std::string_view schema, int64_t most_tokens = -1);

}  // namespace fovea
