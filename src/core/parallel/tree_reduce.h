#pragma once

// Sums over ranks, with the bits of a sum in one process.

#include <cstdint>
#include <span>
#include <vector>

#include "parallel/communicator.h"

namespace fovea {

// The summands of each rank, by their indices in the tree of kernels/sum_tree.h: for each rank, in
// ascending order, the last index that each of its summands includes. The indices of a rank exceed
// those of the ranks before it, and a summand is a complete node of the tree.
using RankSummands = std::vector<std::vector<int64_t>>;

// Adds the summands of all ranks in the order of the tree. Sends and receives the bytes of a ring:
// each rank adds a part of the sum, which all ranks then gather. Keeps its buffers.
class TreeReduction {
 public:
  // A summand of this rank, in pieces that follow one another.
  using Summand = std::vector<std::span<const float>>;

  explicit TreeReduction(Communicator& ranks) : ranks_(ranks) {}
  // Collective. Sets `total` to the sum of the summands of all ranks. `own`: those of this rank,
  // each of the length of `total`.
  void operator()(const RankSummands& summands, const std::vector<Summand>& own,
                  std::span<float> total);
  // Collective. Divides the elements among the ranks: `counts` has the number of each, in their
  // order. Sets `part` to this rank's part of the sum.
  void scatter(const RankSummands& summands, const std::vector<Summand>& own,
               std::span<const int64_t> counts, std::span<float> part);

 private:
  // The elements of each rank: from `begins` on.
  void scatter_block(const RankSummands& summands, const std::vector<Summand>& own,
                     std::span<const int64_t> begins, std::span<const int64_t> counts,
                     std::span<float> part);

  Communicator& ranks_;
  std::vector<float> sent_, received_;
};

}  // namespace fovea
