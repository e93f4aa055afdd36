#include "data/permutation.h"

#include <algorithm>
#include <bit>

#include "fovea/core/random.h"

namespace fovea::train {
namespace {

// Four rounds are enough for large ranges (Luby and Rackoff 1988); halves of one or two bits need
// more.
constexpr uint32_t rounds = 8;

}  // namespace

Permutation::Permutation(uint64_t count, uint64_t key)
    : count_(count),
      key_(key),
      half_bits_(std::max(1, (static_cast<int>(std::bit_width(count - 1)) + 1) / 2)) {}

uint64_t Permutation::operator()(uint64_t index) const {
  const uint64_t mask = (uint64_t{1} << half_bits_) - 1;
  do {  // count_ is at least a quarter of 4^half_bits_: at most four iterations on average
    uint64_t left = index >> half_bits_, right = index & mask;
    for (uint32_t round = 0; round < rounds; ++round) {
      const uint64_t mixed = left ^ (philox(key_, Stream::shuffle, 1 + round, right)[0] & mask);
      left = right;
      right = mixed;
    }
    index = left << half_bits_ | right;
  } while (index >= count_);
  return index;
}

}  // namespace fovea::train
