#include "transcribe/segments.h"

namespace fovea::infer {
namespace {

constexpr int64_t kFramesPerStep = 2;

DividedWindow undivided(const SpeechTokens& special, const std::vector<int32_t>& tokens,
                        int64_t frames) {
  TokenSegment whole{tokens, 0, frames / kFramesPerStep};
  for (auto id = tokens.rbegin(); id != tokens.rend(); ++id) {
    if (!special.is_time(*id)) continue;
    if (*id != special.first_time()) whole.end = *id - special.first_time();
    break;
  }
  return {{whole}, frames};
}

}  // namespace

DividedWindow divide(const SpeechTokens& special, const std::vector<int32_t>& tokens,
                     int64_t frames) {
  const size_t n = tokens.size();
  const auto is_time = [&](size_t i) { return special.is_time(tokens[i]); };
  const bool single = n >= 2 && !is_time(n - 2) && is_time(n - 1);
  std::vector<size_t> ends;  // of segments: after the first time of each pair
  for (size_t i = 0; i + 1 < n; ++i)
    if (is_time(i) && is_time(i + 1)) ends.push_back(i + 1);
  if (ends.empty()) return undivided(special, tokens, frames);
  if (single) {
    ends.push_back(n);
  } else {
    ++ends.back();  // the last segment keeps both times of its pair
  }
  DividedWindow divided;
  size_t begin = 0;
  for (size_t i = 0; i < ends.size(); ++i) {
    const bool paired = !single && i + 1 == ends.size();
    const int32_t end = tokens[ends[i] - (paired ? 2 : 1)];
    divided.segments.push_back({{tokens.begin() + static_cast<std::ptrdiff_t>(begin),
                                 tokens.begin() + static_cast<std::ptrdiff_t>(ends[i])},
                                tokens[begin] - special.first_time(),
                                end - special.first_time()});
    begin = ends[i];
  }
  divided.next = single ? frames : divided.segments.back().end * kFramesPerStep;
  return divided;
}

}  // namespace fovea::infer
