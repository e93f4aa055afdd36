#include "metrics/bootstrap.h"

#include <algorithm>
#include <numeric>

#include "base/threads.h"
#include "fovea/core/random.h"

namespace fovea::infer {

Estimate bootstrap(int64_t count, int64_t samples, uint64_t seed, const SampleMetric& metric) {
  std::vector<int32_t> all(static_cast<size_t>(count));
  std::iota(all.begin(), all.end(), 0);
  std::vector<double> values(static_cast<size_t>(samples));
  parallel_tasks(samples, [&](int64_t sample) {
    Random random(seed, Stream::sampling, static_cast<uint32_t>(sample));
    std::vector<int32_t> texts(all.size());
    for (int32_t& text : texts)
      text = static_cast<int32_t>(uint64_t{random.word()} * all.size() >> 32);
    values[static_cast<size_t>(sample)] = metric(texts);
  });
  std::sort(values.begin(), values.end());
  const size_t below = values.size() / 40;  // 2.5% of the samples are below the interval
  return {metric(all), values[below - 1], values[values.size() - below]};
}

void visit_bootstrap(int64_t& samples, OptionVisitor& v) {
  v.integer({"bootstrap", "bootstrap samples, of which 95% are in the intervals of the metrics"},
            samples, 40, 1'000'000);
}

}  // namespace fovea::infer
