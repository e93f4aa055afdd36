// Runs under mpirun with any number of ranks; exits with 1 if a rank receives a wrong result.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <stdexcept>

#include "kernels/sum_tree.h"
#include "loop/rounded_reduce.h"
#include "parallel/communicator.h"
#include "parallel/tree_reduce.h"

namespace fovea {
namespace {

constexpr size_t kValues = (1 << 20) + 7;  // more than one block of the summation
constexpr int kUnits = 11;

void expect(bool holds, const char* what) {
  if (!holds) throw std::runtime_error(what);
}

// Returns element i of a unit. Sums of these numbers are inexact.
float value(int unit, size_t i) {
  const uint64_t mixed = (i + 1) * 0x9e3779b97f4a7c15u ^ static_cast<uint64_t>(unit + 1) << 40;
  return static_cast<float>(mixed * 0xbf58476d1ce4e5b9u >> 40) / 1e3f;
}

// Returns the sums of units `first` to `end` - 1, in the order of the tree.
std::vector<float> tree_sums(int first, int end) {
  std::vector<float> sums(kValues);
  for (size_t i = 0; i < kValues; ++i) {
    float slots[65] = {};
    const auto merge = [&](int slot) { slots[slot - 1] += slots[slot]; };
    SumTree tree;
    for (int unit = first; unit < end; ++unit) slots[tree.next(unit, merge)] = value(unit, i);
    tree.finish(merge);
    sums[i] = slots[0];
  }
  return sums;
}

// Units 0 to kUnits - 1, divided among the ranks as a step of training is.
void tree_reduce_has_the_bits_of_one_process(Communicator& ranks) {
  RankSummands summands(static_cast<size_t>(ranks.size()));
  std::vector<std::vector<float>> own;
  for (int rank = 0; rank < ranks.size(); ++rank) {
    const int end = kUnits * (rank + 1) / ranks.size();
    for (int first = kUnits * rank / ranks.size(), size = 0; first < end; first += size) {
      for (size = 1; first % (2 * size) == 0 && first + 2 * size <= end;) size *= 2;
      summands[static_cast<size_t>(rank)].push_back(first + size - 1);
      if (rank == ranks.rank()) own.push_back(tree_sums(first, first + size));
    }
  }
  std::vector<TreeReduction::Summand> pieces;
  for (const std::vector<float>& summand : own) {
    const std::span<const float> all(summand);
    pieces.push_back({all.first(5), all.subspan(5, kValues / 2), all.subspan(5 + kValues / 2)});
  }
  TreeReduction reduce(ranks);
  // Ranks end the sums that they have begun at different times.
  std::vector<std::vector<float>> totals(5, std::vector<float>(kValues));
  for (std::vector<float>& total : totals) {
    reduce.begin(summands, pieces, total);
    if (ranks.rank() == 0) reduce.finish();
  }
  reduce.finish();
  for (const std::vector<float>& total : totals)
    expect(total == tree_sums(0, kUnits), "tree_reduce");
}

// Rank r adds the first r + 1 of the elements that are left, and the last rank all others.
void a_rank_gets_its_part_of_the_sum(Communicator& ranks) {
  std::vector<int64_t> counts;
  int64_t left = kValues;
  for (int rank = 0; rank < ranks.size(); ++rank) {
    counts.push_back(rank + 1 == ranks.size() ? left : rank + 1);
    left -= counts.back();
  }
  RankSummands summands;
  for (int64_t rank = 0; rank < ranks.size(); ++rank) summands.push_back({rank});
  const std::vector<float> own = tree_sums(ranks.rank(), ranks.rank() + 1);
  const int64_t begin = std::accumulate(counts.begin(), counts.begin() + ranks.rank(), int64_t{0});
  std::vector<float> part(static_cast<size_t>(counts[static_cast<size_t>(ranks.rank())]));
  TreeReduction reduce(ranks);
  reduce.begin_scatter(summands, {{own}}, counts, part);
  reduce.finish();
  const std::vector<float> all = tree_sums(0, ranks.size());
  expect(std::ranges::equal(part, std::span(all).subspan(static_cast<size_t>(begin), part.size())),
         "scatter");
}

// The sums of many rounds are those of the numbers, up to the rounding of one round.
void rounded_sums_lose_nothing(Communicator& ranks) {
  constexpr int kRounds = 50;
  train::RoundedReduction reduce(ranks);
  double sent = 0, received = 0;
  const std::vector<float> own = tree_sums(ranks.rank(), ranks.rank() + 1);
  for (int round = 0; round < kRounds; ++round) {
    for (int rank = 0; rank < ranks.size(); ++rank) sent += static_cast<double>(value(rank, 0));
    const Tensor total = reduce(tensor_of(own, {std::ssize(own)}));
    received += static_cast<double>(*static_cast<const float*>(total.data()));
  }
  expect(std::abs(sent - received) <= std::abs(sent) / kRounds * 0.02, "rounded");
}

void parts_reach_their_ranks(Communicator& ranks) {
  // Rank r sends r + 1 values to each rank; rank 1 has no values to gather.
  std::vector<int64_t> to(static_cast<size_t>(ranks.size()), ranks.rank() + 1), from, all;
  for (int rank = 0; rank < ranks.size(); ++rank) {
    from.push_back(rank + 1);
    all.push_back(rank == 1 ? 0 : rank + 2);
  }
  const std::vector<float> sent(static_cast<size_t>(ranks.size() * (ranks.rank() + 1)),
                                static_cast<float>(ranks.rank()));
  std::vector<float> received, expected, gathered, each;
  for (int rank = 0; rank < ranks.size(); ++rank) {
    expected.insert(expected.end(), static_cast<size_t>(rank + 1), static_cast<float>(rank));
    each.insert(each.end(), static_cast<size_t>(all[static_cast<size_t>(rank)]),
                static_cast<float>(rank));
  }
  received.resize(expected.size());
  ranks.all_to_all({sent, to}, {received, from});
  expect(received == expected, "all_to_all");
  for (const float x : each) gathered.push_back(x == static_cast<float>(ranks.rank()) ? x : -1);
  ranks.all_gather({gathered, all});
  expect(gathered == each, "all_gather");
}

void bytes_reach_all(Communicator& ranks) {
  const auto of = [](int rank) { return std::string(static_cast<size_t>(rank), 'a'); };
  const std::vector<std::string> all = ranks.gather(of(ranks.rank()));
  expect(std::ssize(all) == ranks.size(), "gather");
  for (int rank = 0; rank < ranks.size(); ++rank)
    expect(all[static_cast<size_t>(rank)] == of(rank), "gather");
}

void messages_arrive_in_order(Communicator& ranks) {
  const int next = (ranks.rank() + 1) % ranks.size();
  for (uint8_t i = 0; i < 3; ++i) ranks.send(next, std::vector<uint8_t>(i, i));
  for (uint8_t i = 0; i < 3;) {
    const auto message = ranks.receive();
    if (!message) continue;
    expect((message->from + 1) % ranks.size() == ranks.rank(), "message: from");
    expect(message->bytes == std::vector<uint8_t>(i, i), "message: bytes");
    ++i;
  }
}

void memory_is_shared(Communicator& ranks) {
  std::atomic<int>* const shared = ranks.share(2);
  shared[1] += ranks.rank() + 1;
  ranks.barrier();
  int sum = 0;
  for (const int rank : ranks.neighbours()) sum += rank + 1;
  expect(shared[0] == 0 && shared[1] == sum, "share");
  ranks.barrier();
}

}  // namespace
}  // namespace fovea

int main() {
  const auto ranks = fovea::open_communicator();
  try {
    fovea::expect(ranks->size() == fovea::started_processes(), "size");
    fovea::tree_reduce_has_the_bits_of_one_process(*ranks);
    fovea::a_rank_gets_its_part_of_the_sum(*ranks);
    fovea::rounded_sums_lose_nothing(*ranks);
    fovea::parts_reach_their_ranks(*ranks);
    fovea::bytes_reach_all(*ranks);
    fovea::messages_arrive_in_order(*ranks);
    fovea::memory_is_shared(*ranks);
  } catch (const std::exception& error) {
    fmt::print(stderr, "rank {} of {}: {}\n", ranks->rank(), ranks->size(), error.what());
    ranks->abort(1);
  }
  return 0;
}
