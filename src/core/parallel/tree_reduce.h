#pragma once

// Sums over ranks, with the bits of a sum in one process.

#include <cstdint>
#include <deque>
#include <memory>
#include <span>
#include <vector>

#include "parallel/communicator.h"

namespace fovea {

// The summands of each rank, by their indices in the tree of kernels/sum_tree.h: for each rank, in
// ascending order, the last index that each of its summands includes. The indices of a rank exceed
// those of the ranks before it, and a summand is a complete node of the tree.
using RankSummands = std::vector<std::vector<int64_t>>;

// Adds the summands of all ranks in the order of the tree. Sends and receives the bytes of a ring:
// each rank adds a part of the sum, which all ranks then gather. While parts are added and
// gathered, the summands of the next ones are already on their way.
class TreeReduction {
 public:
  // A summand of this rank, in pieces that follow one another.
  using Summand = std::vector<std::span<const float>>;

  explicit TreeReduction(Communicator& ranks) : ranks_(ranks) {}
  // Collective. Begins to set `total` to the sum of the summands of all ranks; finish() ends it, in
  // the order of the calls. `own`: those of this rank, each of the length of `total`.
  void begin(const RankSummands& summands, const std::vector<Summand>& own, std::span<float> total);
  // Collective. Begins to divide the elements among the ranks: `counts` has the number of each, in
  // their order. finish() sets `part` to this rank's part of the sum.
  void begin_scatter(const RankSummands& summands, const std::vector<Summand>& own,
                     std::span<const int64_t> counts, std::span<float> part);
  // Collective. Ends all that has begun.
  void finish();

 private:
  // Some elements of a sum.
  struct Block {
    std::vector<int64_t> begins, counts;  // of the elements of each rank in the summands
    std::span<float> part;                // of this rank
    std::span<float> total = {};          // of all ranks, to be gathered; empty = not
    std::vector<int64_t> last = {};       // the indices of the summands in the tree
    std::vector<float> sent = {}, received = {};
    std::unique_ptr<Communicator::Transfer> transfer = {};
  };
  void begin_block(const RankSummands& summands, const std::vector<Summand>& own, Block block);
  void finish_first();
  void wait_until_gathered(size_t most);

  Communicator& ranks_;
  std::deque<Block> begun_;
  std::deque<std::unique_ptr<Communicator::Transfer>> gathered_;
};

}  // namespace fovea
