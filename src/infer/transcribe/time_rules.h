#pragma once

#include <span>
#include <vector>

#include "transcribe/speech_tokens.h"

namespace fovea::infer {

// Forbids tokens after which the times of a text would be inconsistent (Radford et al. 2022,
// section 4.5): times are in pairs, the end of a segment and the start of the next one, except at
// the end of the text; they do not decrease; the text begins with one. If the times together are
// more likely than every other token, the next token is a time. written [T] generated tokens,
// logits [V] of the next one
void restrain_times(const SpeechTokens& tokens, std::span<const int32_t> generated, float* logits,
                    int64_t vocabulary);

}  // namespace fovea::infer
