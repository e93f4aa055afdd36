#pragma once

#include <cstdint>
#include <vector>

#include "fovea/infer/generate.h"

namespace fovea::text {
class Tokenizer;
}

namespace fovea::infer {

// Adds the tokens of options.dry_sequence_breakers to options.dry_breaker_ids, in ascending order:
// those whose text contains one of these texts, and the last token of each text.
void find_breakers(Sampling& options, const text::Tokenizer& tokenizer);

// DRY: subtracts the penalty of options from the logits [V] of the tokens that would continue a
// repetition of the end of `seen`.
void penalise_repetition(float* logits, int64_t vocabulary, const std::vector<int32_t>& seen,
                         const Sampling& options);

}  // namespace fovea::infer
