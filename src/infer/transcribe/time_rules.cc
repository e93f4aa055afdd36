#include "transcribe/time_rules.h"

#include <algorithm>
#include <limits>

#include "generate/sampler.h"

namespace fovea::infer {

void restrain_times(const SpeechTokens& tokens, std::span<const int32_t> generated, float* logits,
                    int64_t vocabulary) {
  const int64_t V = vocabulary, first = std::min<int64_t>(tokens.first_time(), V);
  const auto forbid = [&](int64_t begin, int64_t end) {
    if (begin < end)
      std::fill(logits + begin, logits + end, -std::numeric_limits<float>::infinity());
  };
  forbid(tokens.no_timestamps, tokens.no_timestamps + 1);
  const size_t n = generated.size();
  const bool after_time = n >= 1 && tokens.is_time(generated[n - 1]);
  const bool after_two = n < 2 || tokens.is_time(generated[n - 2]);
  if (after_time && after_two) forbid(first, V);        // text or the end
  if (after_time && !after_two) forbid(0, tokens.end);  // a time or the end
  const auto last = std::find_if(generated.rbegin(), generated.rend(),
                                 [&](int32_t id) { return tokens.is_time(id); });
  // The second time of a pair may equal the first; a later one is greater.
  if (last != generated.rend())
    forbid(first, std::min<int64_t>(V, *last + (after_time && !after_two ? 0 : 1)));
  if (n == 0) {
    forbid(0, first);
    if (tokens.latest_first_time) forbid(first + *tokens.latest_first_time + 1, V);
  }
  const float best_text = *std::max_element(logits, logits + first);
  const float best_time = first < V ? *std::max_element(logits + first, logits + V) : best_text;
  const bool some = best_time > -std::numeric_limits<float>::infinity();
  if (first < V && some && log_sum(logits + first, V - first) > double{best_text}) forbid(0, first);
}

}  // namespace fovea::infer
