#include "probing/bootstrap.h"

#include <algorithm>
#include <numeric>

#include "base/threads.h"
#include "fovea/core/random.h"

namespace fovea::study {

ProbeEstimate bootstrap(int64_t count, uint64_t seed, const SampleMetric& metric) {
  constexpr size_t kSamples = 1000, kBelow = 25;  // 2.5% of the samples are below the interval
  std::vector<int32_t> all(static_cast<size_t>(count));
  std::iota(all.begin(), all.end(), 0);
  std::vector<double> values(kSamples);
  parallel_tasks(std::ssize(values), [&](int64_t sample) {
    Random random(seed, Stream::sampling, static_cast<uint32_t>(sample));
    std::vector<int32_t> texts(all.size());
    for (int32_t& text : texts)
      text = static_cast<int32_t>(uint64_t{random.word()} * all.size() >> 32);
    values[static_cast<size_t>(sample)] = metric(texts);
  });
  std::sort(values.begin(), values.end());
  return {metric(all), values[kBelow - 1], values[kSamples - kBelow]};
}

}  // namespace fovea::study
