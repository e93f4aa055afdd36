#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "fovea/text/tokenizer.h"

namespace fovea::text {

// An index of a vocabulary by the bytes of its tokens. It takes up to a second to build; build it
// once per model. Does not keep the tokenizer. Immutable: safe to use from any thread.
class JsonVocabulary {
 public:
  // `ends`: the end-of-text tokens. `marks`: special tokens that a text may contain, by their
  // names; see mark_ids(). Throws InvalidArgument if `ends` is empty.
  JsonVocabulary(const Tokenizer& tokenizer, std::vector<int32_t> ends,
                 const std::vector<int32_t>& marks = {});
  ~JsonVocabulary();

  struct Tokens;  // internals, for the library only
  const Tokens& tokens() const { return *tokens_; }

 private:
  std::unique_ptr<const Tokens> tokens_;
};

// The type of GenerateOptions::constrain.
using Constraint = std::function<void(std::span<const int32_t> generated, std::span<float> logits)>;

// Returns a constraint that restricts generation to one JSON value valid for `schema`, followed by
// the end of the text. docs/serve.md lists the supported keywords of JSON Schema. Numbers with
// bounds or multipleOf have no exponents. Annotations such as title are ignored. Properties are
// generated in the schema's order, and no object repeats a key. An empty `schema` allows any
// object.
//
// The value and the end token take at most `most_tokens` tokens: near this limit, the value is
// completed in its shortest form. A limit that is too small for the shortest value is ignored; -1 =
// no limit. Use a constraint for one request only, from one thread at a time.
//
// Throws InvalidArgument if the schema is invalid, unsatisfiable, larger than docs/serve.md allows,
// or requires text that the vocabulary cannot represent. Throws Unsupported for other keywords that
// restrict the value. The constraint itself throws InvalidArgument if the schema matches the text
// in too many ways to check a token within tenths of a second.
Constraint json_constraint(std::shared_ptr<const JsonVocabulary> vocabulary,
                           std::string_view schema, int64_t most_tokens = -1);

}  // namespace fovea::text
