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

// Collective. Sets `total` to the sum of the summands of all ranks, added in the order of the tree.
// `own`: the summands of this rank, each of the length of `total`, which may be one of them. Sends
// and receives the bytes of a ring: each rank adds a part of the sum, which all ranks then gather.
void tree_reduce(Communicator& ranks, const RankSummands& summands,
                 std::span<const std::span<const float>> own, std::span<float> total);

}  // namespace fovea
