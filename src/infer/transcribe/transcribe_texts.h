#pragma once

#include <functional>
#include <string>
#include <vector>

#include "generate/generate.h"
#include "transcribe/speech_tokens.h"

namespace fovea::infer {

// The tokens of a text for a model that learns it: language, task, no times, the text, and the end.
// They follow the start token. `language`: a code; empty for a model of one language.
std::vector<int32_t> label_tokens(const SpeechTokens& tokens, const text::Tokenizer& tokenizer,
                                  const std::string& language, const std::string& text);

// Transcribes sounds of at most a window each, without times and without other temperatures, and
// calls `receive` with the number and the text of each; it returns false to stop.
struct WindowedSounds {
  int64_t count = 0;
  std::function<std::vector<float>(int64_t n)> spectrogram;  // scaled, [bins, frames]
  std::function<std::string(int64_t n)> language;            // a code, or empty
};
void transcribe_windows(const Generator& generator, const SpeechTokens& tokens, int64_t beams,
                        const WindowedSounds& sounds, uint64_t cache_bytes,
                        const std::function<bool(int64_t n, const std::string& text)>& receive);

}  // namespace fovea::infer
