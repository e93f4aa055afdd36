#include "generate/stop_string_matcher.h"

#include <algorithm>
#include <utility>

namespace fovea::infer {

std::string StopStringMatcher::add(std::string_view piece) {
  if (stopped_) return {};
  held_ += piece;
  // The stop string that is completed first ends the text, independent of the division into pieces;
  // of several that end at the same byte, the longest.
  size_t first = std::string::npos, complete = std::string::npos;
  for (const std::string& stop : stops_) {
    const size_t begin = stop.empty() ? std::string::npos : held_.find(stop);
    if (begin == std::string::npos) continue;
    const size_t end = begin + stop.size();
    if (end > complete || (end == complete && begin >= first)) continue;
    first = begin;
    complete = end;
    found_ = stop;
  }
  std::string sure;
  if (first != std::string::npos) {
    stopped_ = true;
    sure = held_.substr(0, first);
    held_.clear();
    return sure;
  }
  // Holds back the longest suffix that begins a stop string.
  size_t keep = 0;
  for (const std::string& stop : stops_) {
    for (size_t n = std::min(stop.size() - !stop.empty(), held_.size()); n > keep; --n)
      if (std::string_view(held_).substr(held_.size() - n) == std::string_view(stop).substr(0, n))
        keep = n;
  }
  sure = held_.substr(0, held_.size() - keep);
  held_.erase(0, held_.size() - keep);
  return sure;
}

std::string StopStringMatcher::finish() { return std::exchange(held_, {}); }

}  // namespace fovea::infer
