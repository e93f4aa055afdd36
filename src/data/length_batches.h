#pragma once

#include <array>
#include <cstdint>
#include <vector>

namespace fovea {

// Batches of samples of similar length, so that little of a batch is padding. The samples are
// sorted by length, of the second text and then of the first, those of about the same lengths count
// as equal, and the row is cut into batches. Each epoch takes the batches in a random order, with
// samples of equal lengths in a random order: which samples batch n has is a pure function of the
// seed and n, and every epoch has as many batches, each of as many samples.
class LengthBatches {
 public:
  using Lengths = std::array<int32_t, 2>;  // of a sample's two texts, 0 where it has but one
  // `budget`: tokens of a batch's longer side at most, padding included, but at least one sample.
  // `most`: samples of a batch at most; 0 = as many as the budget allows.
  LengthBatches(const std::vector<Lengths>& lengths, int64_t budget, int64_t most, uint64_t seed);

  int64_t batches() const { return static_cast<int64_t>(cuts_.size()) - 1; }  // in an epoch

  std::vector<int64_t> operator()(int64_t number) const;  // the samples of the n-th batch
  std::vector<int64_t> in_order(int64_t batch) const;     // as sorted, for evaluation

 private:
  struct Run {  // samples of equal lengths, as places in order_
    int64_t begin, end;
  };
  uint64_t key(uint64_t epoch, uint32_t which) const;

  std::vector<int64_t> order_;  // samples by length
  std::vector<Run> runs_;
  std::vector<int64_t> run_of_;  // by place
  std::vector<int64_t> cuts_;    // places where batches begin, and the end
  uint64_t seed_;
};

}  // namespace fovea
