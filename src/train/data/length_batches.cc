#include "data/length_batches.h"

#include <algorithm>
#include <numeric>

#include "base/error.h"
#include "data/permutation.h"
#include "fovea/core/random.h"

namespace fovea::train {
namespace {

constexpr uint32_t kSubstream = 16;  // substream of Stream::shuffle; windows of text use 0

// Returns the longest length in the same class as `length`. Each length up to 16 is a class; above
// 16, a class spans about an eighth of its longest length. Finer classes leave fewer samples to
// shuffle; coarser classes need more padding.
int32_t class_of(int32_t length) {
  int32_t most = 1;
  while (most < length) most += std::max(1, most / 8);
  return most;
}

}  // namespace

LengthBatches::LengthBatches(const std::vector<Lengths>& lengths, int64_t budget, int64_t most,
                             uint64_t seed)
    : order_(lengths.size()), run_of_(lengths.size()), cuts_{0}, seed_(seed) {
  check(!lengths.empty() && budget >= 1, "batches: {} samples, a budget of {}; expected at least 1",
        lengths.size(), budget);
  std::vector<Lengths> classes;
  for (const Lengths& l : lengths) classes.push_back({class_of(l[1]), class_of(l[0])});
  std::iota(order_.begin(), order_.end(), 0);
  const auto of = [&](int64_t position) {
    return classes[static_cast<size_t>(order_[static_cast<size_t>(position)])];
  };
  std::stable_sort(order_.begin(), order_.end(), [&](int64_t a, int64_t b) {
    return classes[static_cast<size_t>(a)] < classes[static_cast<size_t>(b)];
  });
  const auto count = static_cast<int64_t>(order_.size());
  int64_t longest = 0;  // longest text of the current batch
  for (int64_t position = 0; position < count; ++position) {
    if (position == 0 || of(position) != of(position - 1)) runs_.push_back({position, position});
    runs_.back().end = position + 1;
    run_of_[static_cast<size_t>(position)] = static_cast<int64_t>(runs_.size()) - 1;
    const int64_t samples = position - cuts_.back() + 1;
    const int64_t here = std::max(of(position)[0], of(position)[1]);
    longest = std::max(longest, here);
    if (samples > 1 && (samples * longest > budget || (most > 0 && samples > most))) {
      cuts_.push_back(position);
      longest = here;
    }
  }
  cuts_.push_back(count);
}

uint64_t LengthBatches::key(uint64_t epoch, uint32_t which) const {
  const auto words = philox(seed_, Stream::shuffle, kSubstream, epoch << 24 | which);
  return uint64_t{words[0]} << 32 | words[1];
}

std::vector<int64_t> LengthBatches::operator()(int64_t number) const {
  const auto epoch = static_cast<uint64_t>(number / batches());
  const Permutation turns(static_cast<uint64_t>(batches()), key(epoch, 0));
  const auto batch = static_cast<int64_t>(turns(static_cast<uint64_t>(number % batches())));
  const int64_t begin = cuts_[static_cast<size_t>(batch)];
  std::vector<int64_t> samples;
  for (int64_t position = begin; position < cuts_[static_cast<size_t>(batch) + 1]; ++position) {
    const int64_t index = run_of_[static_cast<size_t>(position)];
    const Run& run = runs_[static_cast<size_t>(index)];
    const Permutation equals(static_cast<uint64_t>(run.end - run.begin),
                             key(epoch, static_cast<uint32_t>(index) + 1));
    const auto other =
        run.begin + static_cast<int64_t>(equals(static_cast<uint64_t>(position - run.begin)));
    samples.push_back(order_[static_cast<size_t>(other)]);
  }
  return samples;
}

std::vector<int64_t> LengthBatches::in_order(int64_t batch) const {
  return {order_.begin() + cuts_[static_cast<size_t>(batch)],
          order_.begin() + cuts_[static_cast<size_t>(batch) + 1]};
}

}  // namespace fovea::train
