#include "transcribe/partial_pace.h"

#include <algorithm>

#include "audio/log_mel.h"
#include "transcribe/voice.h"

namespace fovea::infer {
namespace {

constexpr double kLeastWait = 0.5, kMostWait = 4;  // seconds of new audio

}  // namespace

bool PartialPace::is_due(const std::vector<float>& levels, int64_t start) const {
  const int64_t known = std::max(frames_, start);
  const double fresh = media::seconds_of(std::ssize(levels) - known);
  // Partial results take at most half of the time, so that a slow machine keeps up.
  if (fresh < std::max(kLeastWait, 2 * cost_)) return false;
  const std::vector<FrameRange> voice = recent_voice(levels);
  if (voice.empty() || voice.back().end <= known) return false;
  return fresh >= wait_ || voice.back().begin > known;  // the latter: voice after silence
}

void PartialPace::reported(int64_t frames, double seconds, bool changed) {
  frames_ = frames;
  cost_ = seconds;
  wait_ = changed ? kLeastWait : std::min(kMostWait, 2 * std::max(wait_, kLeastWait));
}

}  // namespace fovea::infer
