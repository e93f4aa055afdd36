#pragma once

// The kinds of outputs: the logit of a label, the log-probability of a next token, and the
// similarity of two texts. `exact` is the result of exact_copy().

#include <string>
#include <vector>

#include "classify/classifier_parts.h"
#include "embed/embedder_parts.h"
#include "explain/output.h"

namespace fovea::study {

using ExactModel = std::shared_ptr<const model::Transformer>;

ExplainedOutput label_output(const infer::Classifier::Parts& parts, const ExactModel& exact,
                             int64_t label);

// The cosine or the dot product of a text's vector and that of `other`. Throws Unsupported if the
// model compares vectors in another way.
ExplainedOutput similarity_output(const infer::SentenceModel& model, const ExactModel& exact,
                                  const std::string& other, const infer::EmbedOptions& options);

ExplainedOutput token_output(const ExactModel& exact, int32_t id);

struct NextToken {
  int32_t id = 0;
  double probability = 0;
};
// Returns the most probable tokens, best first, by the probabilities of all.
std::vector<NextToken> most_probable(const std::vector<float>& probabilities);
// Returns the most probable next tokens, best first.
std::vector<NextToken> likely_tokens(const model::Transformer& exact,
                                     const infer::TokenizedText& text);

// Returns the id of the token that `name` is: a text of one token, or "#" and an id. Without a
// tokenizer, the "#" may be missing. Throws a FieldError of "target" if there is none.
int32_t token_named(const std::string& name, const text::Tokenizer* tokenizer, int64_t vocabulary);

}  // namespace fovea::study
