#include "parallel/tree_reduce.h"

#include <algorithm>

#include "base/threads.h"
#include "kernels/sum_tree.h"

namespace fovea {
namespace {

// Values at a time: limits the memory for those of the other ranks.
constexpr int64_t kBlock = int64_t{1} << 20;
constexpr int64_t kAddedAtOnce = int64_t{1} << 14;

// Copies the elements [begin, begin + count) of a summand.
void copy_part(const TreeReduction::Summand& from, int64_t begin, int64_t count, float* to) {
  for (const std::span<const float> piece : from) {
    const int64_t size = std::ssize(piece);
    if (count == 0) return;
    if (begin < size) {
      const int64_t part = std::min(count, size - begin);
      to = std::copy_n(piece.begin() + begin, part, to);
      count -= part;
      begin = 0;
    } else {
      begin -= size;
    }
  }
}

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

}  // namespace

void TreeReduction::operator()(const RankSummands& summands, const std::vector<Summand>& own,
                               std::span<float> total) {
  for (int64_t begin = 0; begin < std::ssize(total); begin += kBlock) {
    const int64_t size = std::min(kBlock, std::ssize(total) - begin);
    reduce_block(summands, own, begin,
                 total.subspan(static_cast<size_t>(begin), static_cast<size_t>(size)));
  }
}

// Rank r adds the elements from size * r / ranks on.
void TreeReduction::reduce_block(const RankSummands& summands, const std::vector<Summand>& own,
                                 int64_t begin, std::span<float> total) {
  const auto start = [&](size_t rank) {
    return std::ssize(total) * static_cast<int64_t>(rank) / ranks_.size();
  };
  const auto me = static_cast<size_t>(ranks_.rank());
  const int64_t mine = start(me + 1) - start(me);
  std::vector<int64_t> to, from, gathered, last;
  sent_.resize(own.size() * total.size());
  float* next = sent_.data();
  for (size_t r = 0; r < summands.size(); ++r) {
    const int64_t part = start(r + 1) - start(r);
    for (const Summand& summand : own) {
      copy_part(summand, begin + start(r), part, next);
      next += part;
    }
    to.push_back(std::ssize(own) * part);
    from.push_back(std::ssize(summands[r]) * mine);
    gathered.push_back(part);
    last.insert(last.end(), summands[r].begin(), summands[r].end());
  }
  received_.resize(last.size() * static_cast<size_t>(mine));
  ranks_.all_to_all({sent_, to}, {received_, from});
  add_rows(received_.data(), last, mine);
  std::copy_n(received_.data(), mine, total.data() + start(me));
  ranks_.all_gather({total, gathered});
}

}  // namespace fovea
