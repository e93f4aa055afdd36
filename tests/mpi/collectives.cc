// Runs under mpirun with any number of ranks; exits with 1 if a rank receives a wrong result.

#include <fmt/format.h>

#include <bit>
#include <stdexcept>

#include "kernels/sum_tree.h"
#include "parallel/communicator.h"

namespace fovea {
namespace {

constexpr size_t kValues = (1 << 20) + 7;  // more than one block of the summation
constexpr int kUnits = 8;  // divided among 1, 2, 4 or 8 ranks; otherwise each rank has one unit

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

void all_reduce_has_the_bits_of_one_process(Communicator& ranks) {
  const bool power_of_two = std::has_single_bit(static_cast<unsigned>(ranks.size()));
  const int units = power_of_two && ranks.size() <= kUnits ? kUnits / ranks.size() : 1;
  std::vector<float> values = tree_sums(ranks.rank() * units, (ranks.rank() + 1) * units);
  ranks.all_reduce(values);
  expect(values == tree_sums(0, ranks.size() * units), "all_reduce");
}

void bytes_reach_all(Communicator& ranks) {
  const int last = ranks.size() - 1;
  std::vector<uint8_t> bytes(5, static_cast<uint8_t>(ranks.rank()));
  ranks.broadcast(bytes, last);
  expect(bytes == std::vector<uint8_t>(5, static_cast<uint8_t>(last)), "broadcast");
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
    fovea::all_reduce_has_the_bits_of_one_process(*ranks);
    fovea::bytes_reach_all(*ranks);
    fovea::messages_arrive_in_order(*ranks);
    fovea::memory_is_shared(*ranks);
  } catch (const std::exception& error) {
    fmt::print(stderr, "rank {} of {}: {}\n", ranks->rank(), ranks->size(), error.what());
    ranks->abort(1);
  }
  return 0;
}
