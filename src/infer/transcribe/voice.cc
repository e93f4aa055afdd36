#include "transcribe/voice.h"

#include <algorithm>

namespace fovea::infer {
namespace {

constexpr float kSilent = -9;                              // rounding noise of 16 bits is louder
constexpr int64_t kPause = 50, kClick = 10, kMargin = 20;  // frames of 10 ms
static_assert(kVoiceOnset >= kClick + kMargin);

float threshold_of(std::vector<float> levels, float peak) {
  const auto tenth = levels.begin() + std::ssize(levels) / 10;
  std::nth_element(levels.begin(), tenth, levels.end());
  return std::max({kSilent, peak - 5, std::min(*tenth + 1, peak - 3)});
}

}  // namespace

std::vector<FrameRange> voice_in(const std::vector<float>& levels) {
  if (levels.empty()) return {};
  const float least = threshold_of(levels, *std::max_element(levels.begin(), levels.end()));
  std::vector<FrameRange> loud;
  for (int64_t i = 0; i < std::ssize(levels); ++i) {
    if (levels[static_cast<size_t>(i)] < least) continue;
    if (!loud.empty() && i - loud.back().end < kPause) {
      loud.back().end = i + 1;
    } else {
      loud.push_back({i, i + 1});
    }
  }
  std::erase_if(loud, [](const FrameRange& range) { return range.end - range.begin < kClick; });
  std::vector<FrameRange> voice;
  for (const FrameRange& range : loud) {
    const FrameRange wide{std::max<int64_t>(0, range.begin - kMargin),
                          std::min(std::ssize(levels), range.end + kMargin)};
    if (!voice.empty() && wide.begin <= voice.back().end) {
      voice.back().end = wide.end;
    } else {
      voice.push_back(wide);
    }
  }
  return voice;
}

std::vector<FrameRange> recent_voice(const std::vector<float>& levels) {
  constexpr int64_t kRecent = 60'000;
  const int64_t first = std::max<int64_t>(0, std::ssize(levels) - kRecent);
  std::vector<FrameRange> voice = voice_in({levels.begin() + first, levels.end()});
  for (FrameRange& range : voice) range = {range.begin + first, range.end + first};
  return voice;
}

std::vector<FrameRange> packed_into(const std::vector<FrameRange>& voice, int64_t window) {
  std::vector<FrameRange> packed;
  for (FrameRange range : voice) {
    if (!packed.empty() && range.end - packed.back().begin <= window) {
      packed.back().end = range.end;
      continue;
    }
    for (; range.end - range.begin > window; range.begin += window)
      packed.push_back({range.begin, range.begin + window});
    packed.push_back(range);
  }
  return packed;
}

}  // namespace fovea::infer
