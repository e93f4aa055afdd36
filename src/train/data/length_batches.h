#pragma once

#include <array>
#include <cstdint>
#include <vector>

namespace fovea::train {

// Batches of samples of similar length, with little padding. The samples are sorted by the length
// of their second text, then of their first (similar lengths count as equal), and the sorted
// sequence is cut into batches. Each epoch visits the batches in a random order and shuffles
// samples of equal lengths: the samples of batch n are a pure function of the seed and n, and every
// epoch has the same number of batches with the same sizes.
class LengthBatches {
 public:
  using Lengths = std::array<int32_t, 2>;  // of a sample's two texts; 0 for a missing second text
  // `budget`: maximum number of tokens, including padding, of the first texts of a batch, and of
  // its second texts; a batch has at least one sample, even if it exceeds the budget. `most`:
  // maximum number of samples in a batch (0: limited by the budget only).
  LengthBatches(const std::vector<Lengths>& lengths, int64_t budget, int64_t most, uint64_t seed);

  int64_t batches() const { return static_cast<int64_t>(cuts_.size()) - 1; }  // in an epoch

  std::vector<int64_t> operator()(int64_t number) const;  // the samples of batch `number`
  std::vector<int64_t> in_order(int64_t batch) const;     // a batch in sorted order, for evaluation

 private:
  struct Run {  // samples of equal lengths, as indices in order_
    int64_t begin, end;
  };
  uint64_t key(uint64_t epoch, uint32_t which) const;

  std::vector<int64_t> order_;  // samples, sorted by length
  std::vector<Run> runs_;
  std::vector<int64_t> run_of_;  // the run of each index in order_
  std::vector<int64_t> cuts_;    // indices where batches begin, and the end
  uint64_t seed_;
};

}  // namespace fovea::train
