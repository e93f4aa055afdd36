#include "parallel/tree_reduce.h"

#include <algorithm>
#include <numeric>

#include "base/threads.h"
#include "kernels/sum_tree.h"

namespace fovea {
namespace {

// Values at a time: limits the memory for those of the other ranks.
constexpr int64_t kBlock = int64_t{1} << 20;
constexpr size_t kBegun = 2;     // blocks that are on their way, while an earlier one is added
constexpr size_t kGathered = 2;  // sums that are on their way to all ranks
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

void TreeReduction::begin(const RankSummands& summands, const std::vector<Summand>& own,
                          std::span<float> total) {
  const int64_t ranks = ranks_.size(), me = ranks_.rank();
  for (int64_t begin = 0; begin < std::ssize(total); begin += kBlock) {
    const int64_t size = std::min(kBlock, std::ssize(total) - begin);
    Block block;
    block.total = total.subspan(static_cast<size_t>(begin), static_cast<size_t>(size));
    for (int64_t r = 0; r < ranks; ++r) {
      block.begins.push_back(begin + size * r / ranks);
      block.counts.push_back(size * (r + 1) / ranks - size * r / ranks);
    }
    block.part = block.total.subspan(static_cast<size_t>(size * me / ranks),
                                     static_cast<size_t>(block.counts[static_cast<size_t>(me)]));
    begin_block(summands, own, std::move(block));
  }
}

void TreeReduction::begin_scatter(const RankSummands& summands, const std::vector<Summand>& own,
                                  std::span<const int64_t> counts, std::span<float> part) {
  const int64_t total = std::accumulate(counts.begin(), counts.end(), int64_t{0}),
                blocks = (total + kBlock - 1) / kBlock;
  for (int64_t n = 0; n < blocks; ++n) {
    Block block;
    int64_t of_rank = 0, done = 0;
    for (size_t r = 0; r < counts.size(); ++r) {
      const int64_t begin = counts[r] * n / blocks;
      block.begins.push_back(of_rank + begin);
      block.counts.push_back(counts[r] * (n + 1) / blocks - begin);
      of_rank += counts[r];
      if (static_cast<int>(r) == ranks_.rank()) done = begin;
    }
    const int64_t mine = block.counts[static_cast<size_t>(ranks_.rank())];
    block.part = part.subspan(static_cast<size_t>(done), static_cast<size_t>(mine));
    begin_block(summands, own, std::move(block));
  }
}

void TreeReduction::begin_block(const RankSummands& summands, const std::vector<Summand>& own,
                                Block block) {
  const int64_t mine = std::ssize(block.part),
                total = std::accumulate(block.counts.begin(), block.counts.end(), int64_t{0});
  std::vector<int64_t> to, from;
  block.sent.resize(own.size() * static_cast<size_t>(total));
  float* next = block.sent.data();
  for (size_t r = 0; r < summands.size(); ++r) {
    for (const Summand& summand : own) {
      copy_part(summand, block.begins[r], block.counts[r], next);
      next += block.counts[r];
    }
    to.push_back(std::ssize(own) * block.counts[r]);
    from.push_back(std::ssize(summands[r]) * mine);
    block.last.insert(block.last.end(), summands[r].begin(), summands[r].end());
  }
  block.received.resize(block.last.size() * static_cast<size_t>(mine));
  block.transfer = ranks_.begin_all_to_all({block.sent, to}, {block.received, from});
  begun_.push_back(std::move(block));
  while (begun_.size() > kBegun) finish_first();
}

void TreeReduction::finish_first() {
  Block block = std::move(begun_.front());
  begun_.pop_front();
  block.transfer->wait();
  const int64_t mine = std::ssize(block.part);
  add_rows(block.received.data(), block.last, mine);
  std::copy_n(block.received.data(), mine, block.part.data());
  if (block.total.empty()) return;
  gathered_.push_back(ranks_.begin_all_gather({block.total, block.counts}));
  wait_until_gathered(kGathered);
}

// Waits until at most `most` sums are on their way.
void TreeReduction::wait_until_gathered(size_t most) {
  for (; gathered_.size() > most; gathered_.pop_front()) gathered_.front()->wait();
}

void TreeReduction::finish() {
  while (!begun_.empty()) finish_first();
  wait_until_gathered(0);
}

}  // namespace fovea
