#pragma once

#include <cstdint>
#include <vector>

namespace fovea::infer {

struct FrameRange {
  int64_t begin = 0, end = 0;
  bool operator==(const FrameRange&) const = default;
};

// Returns the frames with voice, given the decimal logarithm of the power in each frame's loudest
// band. The background is the level that a tenth of the frames stay below. A frame is loud if it is
// 10 dB above the background, or less than 30 dB below the loudest frame, and in any case less than
// 50 dB below it. Pauses of less than half a second belong to the voice, as does a fifth of a
// second at both ends; loud parts of less than a tenth of a second are noise.
std::vector<FrameRange> voice_in(const std::vector<float>& levels);

// The same of the last ten minutes of the levels.
std::vector<FrameRange> recent_voice(const std::vector<float>& levels);
// Voice may begin in the last frames of a recording that has not ended, without being found yet.
constexpr int64_t kVoiceOnset = 30;

// Returns ranges of at most `window` frames that contain all of `voice`: neighbours are joined
// while they fit, and a longer range is divided.
std::vector<FrameRange> packed_into(const std::vector<FrameRange>& voice, int64_t window);

}  // namespace fovea::infer
