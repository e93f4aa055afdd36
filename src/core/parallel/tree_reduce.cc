#include "parallel/tree_reduce.h"

#include <algorithm>

#include "base/threads.h"
#include "kernels/sum_tree.h"

namespace fovea {
namespace {

// Values at a time: limits the memory for those of the other ranks.
constexpr int64_t kBlock = int64_t{1} << 20;
constexpr int64_t kAddedAtOnce = int64_t{1} << 14;

// The part of a block that each rank adds.
struct BlockParts {
  BlockParts(int64_t size, int64_t ranks) {
    for (int64_t r = 0; r <= ranks; ++r) starts.push_back(size * r / ranks);
  }
  int64_t count(size_t rank) const { return starts[rank + 1] - starts[rank]; }
  std::vector<int64_t> starts;
};

// Adds rows of `count` values in the order of the tree, into the first row.
void add_rows(float* rows, const std::vector<int64_t>& last, int64_t count) {
  parallel_for(count, kAddedAtOnce, [&](int64_t begin, int64_t end) {
    std::vector<float*> held(last.size());
    const auto merge = [&](int slot) {
      float* const lower = held[static_cast<size_t>(slot) - 1];
      const float* const upper = held[static_cast<size_t>(slot)];
      for (int64_t i = begin; i < end; ++i) lower[i] += upper[i];
    };
    SumTree tree;
    for (size_t n = 0; n < last.size(); ++n) {
      const int slot = tree.next(last[n], merge);
      held[static_cast<size_t>(slot)] = rows + static_cast<int64_t>(n) * count;
    }
    tree.finish(merge);
  });
}

class BlockReduction {
 public:
  BlockReduction(Communicator& ranks, const RankSummands& summands) : ranks_(ranks) {
    for (const std::vector<int64_t>& of_rank : summands) {
      counts_.push_back(std::ssize(of_rank));
      last_.insert(last_.end(), of_rank.begin(), of_rank.end());
    }
  }

  void operator()(std::span<const std::span<const float>> own, std::span<float> total) {
    const BlockParts parts(std::ssize(total), ranks_.size());
    const auto me = static_cast<size_t>(ranks_.rank());
    exchange(own, parts);
    add_rows(received_.data(), last_, parts.count(me));
    std::copy_n(received_.data(), parts.count(me), total.data() + parts.starts[me]);
    std::vector<int64_t> gathered;
    for (size_t r = 0; r < counts_.size(); ++r) gathered.push_back(parts.count(r));
    ranks_.all_gather({total, gathered});
  }

 private:
  // Receives the part of this rank of each summand.
  void exchange(std::span<const std::span<const float>> own, const BlockParts& parts) {
    const int64_t mine = parts.count(static_cast<size_t>(ranks_.rank()));
    std::vector<int64_t> to, from;
    sent_.clear();
    for (size_t r = 0; r < counts_.size(); ++r) {
      for (const std::span<const float> summand : own) {
        const auto begin = summand.begin() + parts.starts[r];
        sent_.insert(sent_.end(), begin, begin + parts.count(r));
      }
      to.push_back(std::ssize(own) * parts.count(r));
      from.push_back(counts_[r] * mine);
    }
    received_.resize(last_.size() * static_cast<size_t>(mine));
    ranks_.all_to_all({sent_, to}, {received_, from});
  }

  Communicator& ranks_;
  std::vector<int64_t> counts_, last_;  // of each rank; of each summand
  std::vector<float> sent_, received_;
};

}  // namespace

void tree_reduce(Communicator& ranks, const RankSummands& summands,
                 std::span<const std::span<const float>> own, std::span<float> total) {
  BlockReduction reduce(ranks, summands);
  for (int64_t begin = 0; begin < std::ssize(total); begin += kBlock) {
    const auto first = static_cast<size_t>(begin);
    const auto size = static_cast<size_t>(std::min(kBlock, std::ssize(total) - begin));
    std::vector<std::span<const float>> block;
    for (const std::span<const float> summand : own) block.push_back(summand.subspan(first, size));
    reduce(block, total.subspan(first, size));
  }
}

}  // namespace fovea
