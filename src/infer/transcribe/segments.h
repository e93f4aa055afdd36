#pragma once

#include "transcribe/speech_tokens.h"

namespace fovea::infer {

// A segment of a window: its tokens, and its times in steps of 20 ms from the beginning of the
// window.
struct TokenSegment {
  std::vector<int32_t> tokens;
  int64_t start = 0, end = 0;
};

struct DividedWindow {
  std::vector<TokenSegment> segments;
  int64_t next = 0;  // frames from the window's beginning to the next window
};

// Divides the text of a window at its pairs of times. If it ends with a pair, the next window
// begins there, since speech continues; a single time at the end means that no speech follows. Text
// after the last pair is left out. A text without a pair is one segment. tokens: without the end
// token; frames: of audio in the window
DividedWindow divide(const SpeechTokens& special, const std::vector<int32_t>& tokens,
                     int64_t frames);

}  // namespace fovea::infer
