#pragma once

#include "fovea/infer/transcribe.h"
#include "generate/generate.h"
#include "transcribe/speech_tokens.h"

namespace fovea::infer {

// See words_in_sound(). `language`: a valid one, or empty.
WordsInSound words_of_window(const Generator& generator, const SpeechTokens& tokens,
                             const std::string& language, const media::SoundSource& sound,
                             uint64_t cache_bytes);

}  // namespace fovea::infer
