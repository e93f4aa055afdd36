#include "data/masking.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "fovea/core/random.h"

namespace fovea::train {
namespace {

// Substreams of Stream::shuffle; windows and batches use other substreams.
constexpr uint32_t kMaskSubstream = 17, kSpanSubstream = 18;

// Returns `parts` positive numbers whose sum is `total`; all such lists are equally likely. Draws
// parts - 1 borders from the total - 1 possible positions, without replacement.
std::vector<int64_t> split(int64_t total, int64_t parts, Random& random) {
  std::vector<char> border(static_cast<size_t>(total), 0);
  for (int64_t left = parts - 1, at = 1; at < total; ++at) {
    // `left` of the total - at remaining positions become borders
    if (static_cast<int64_t>(random.word() % static_cast<uint64_t>(total - at)) < left) {
      border[static_cast<size_t>(at)] = 1;
      --left;
    }
  }
  std::vector<int64_t> lengths = {0};
  for (const char begins : border) {
    if (begins != 0) lengths.push_back(0);
    ++lengths.back();
  }
  return lengths;
}

}  // namespace

void mask_tokens(const Masking& m, uint64_t seed, int64_t sample, int64_t count, int32_t* ids,
                 int32_t* labels) {
  for (int64_t i = 0; i < count; ++i) {
    const auto counter = static_cast<uint64_t>(sample * count + i);
    const auto words = philox(seed, Stream::shuffle, kMaskSubstream, counter);
    labels[i] = -1;
    if (static_cast<double>(uniform(words[0])) >= m.share) continue;
    labels[i] = ids[i];
    const float kind = uniform(words[1]);
    if (kind < 0.8f) {
      ids[i] = m.mask;
    } else if (kind < 0.9f) {
      ids[i] = m.ordinary[words[2] % m.ordinary.size()];
    }
  }
}

int64_t SpanCutting::noise(int64_t window) const {
  const auto tokens = std::llround(static_cast<double>(window) * share);
  return std::clamp<int64_t>(tokens, 1, window - 1);
}

int64_t SpanCutting::spans(int64_t window) const {
  const int64_t cut = noise(window);
  const auto wanted = std::llround(static_cast<double>(cut) / mean_span);
  return std::clamp<int64_t>(wanted, 1, std::min(cut, window - cut));
}

int64_t SpanCutting::longest_window(int64_t context) const {
  int64_t window = 2;
  while (source_length(window + 1) <= context && target_length(window + 1) <= context) ++window;
  return window;
}

void cut_spans(const SpanCutting& c, uint64_t seed, int64_t sample, const int32_t* window,
               int64_t count, int32_t* source, int32_t* target) {
  const int64_t spans = c.spans(count);
  check(spans <= std::ssize(c.gaps),
        "spans: {} in a window; expected at most {}, the number of sentinel tokens", spans,
        c.gaps.size());
  const auto words = philox(seed, Stream::shuffle, kSpanSubstream, static_cast<uint64_t>(sample));
  Random random(uint64_t{words[0]} << 32 | words[1], Stream::shuffle, kSpanSubstream);
  const std::vector<int64_t> cut = split(c.noise(count), spans, random),
                             kept = split(count - c.noise(count), spans, random);
  for (int64_t i = 0; i < spans; ++i) {
    const auto n = static_cast<size_t>(i);
    source = std::copy_n(window, kept[n], source);
    window += kept[n];
    *source++ = *target++ = c.gaps[n];
    target = std::copy_n(window, cut[n], target);
    window += cut[n];
  }
  *source = *target = c.end;
}

}  // namespace fovea::train
