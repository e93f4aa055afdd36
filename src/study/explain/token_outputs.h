#pragma once

// The outputs about some tokens of a text, whose positions the text knows: the candidate for a mask
// token, the label of an entity, and the span that answers a question.

#include <vector>

#include "explain/outputs.h"

namespace fovea::study {

// The log-probability of token `id` at the position of a mask token.
ExplainedOutput mask_output(const infer::Classifier::Parts& parts, const ExactModel& exact,
                            const ExplainedText& text, int32_t id);
// Returns the most probable tokens at the position of a mask token, best first.
std::vector<NextToken> likely_at(const infer::Classifier::Parts& parts,
                                 const model::Transformer& exact, const ExplainedText& text);

// The mean over the tokens of an entity of a logit of each: that of labels[i] for its token i.
ExplainedOutput entity_output(const infer::Classifier::Parts& parts, const ExactModel& exact,
                              const ExplainedText& text, const std::vector<int32_t>& labels);
// Returns the probabilities of the labels for the tokens of an entity.   -> [tokens, labels]
Tensor entity_probabilities(const infer::Classifier::Parts& parts, const model::Transformer& exact,
                            const ExplainedText& text);

// The logit of the first token to begin an answer, plus that of the last one to end it.
ExplainedOutput span_output(const infer::Classifier::Parts& parts, const ExactModel& exact,
                            const ExplainedText& text);

}  // namespace fovea::study
