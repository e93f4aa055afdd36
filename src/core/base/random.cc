#include "fovea/core/random.h"

#include <cmath>
#include <numbers>

#include "base/math.h"

namespace fovea {
namespace {

// The multipliers and key increments of Philox4x32 (Salmon et al. 2011, table 2 and section 3.3).
constexpr uint64_t kMultiplier0 = 0xD2511F53, kMultiplier1 = 0xCD9E8D57;
constexpr uint32_t kWeyl0 = 0x9E3779B9, kWeyl1 = 0xBB67AE85;
constexpr int kRounds = 10;

}  // namespace

std::array<uint32_t, 4> philox(uint64_t seed, Stream stream, uint32_t substream, uint64_t counter) {
  std::array<uint32_t, 4> x = {static_cast<uint32_t>(counter), static_cast<uint32_t>(counter >> 32),
                               substream, static_cast<uint32_t>(stream)};
  uint32_t key0 = static_cast<uint32_t>(seed), key1 = static_cast<uint32_t>(seed >> 32);
  for (int round = 0; round < kRounds; ++round) {
    const uint64_t product0 = kMultiplier0 * x[0], product1 = kMultiplier1 * x[2];
    x = {static_cast<uint32_t>(product1 >> 32) ^ x[1] ^ key0, static_cast<uint32_t>(product1),
         static_cast<uint32_t>(product0 >> 32) ^ x[3] ^ key1, static_cast<uint32_t>(product0)};
    key0 += kWeyl0;
    key1 += kWeyl1;
  }
  return x;
}

uint32_t Random::word() {
  if (drawn_ % 4 == 0) block_ = philox(seed_, stream_, substream_, drawn_ / 4);
  return block_[drawn_++ % 4];
}

double Random::uniform_double() {
  const uint64_t high = word(), low = word();
  return static_cast<double>((high << 32 | low) >> 11) * 0x1p-53;
}

// Each call draws two uniform numbers and uses one of the two normal numbers that they give, so
// that the n-th result depends only on n; 1 - u keeps the logarithm finite.
float Random::normal() {
  const double radius = std::sqrt(-2 * math::log(1 - uniform_double()));
  const double angle = 2 * std::numbers::pi * uniform_double();
  return static_cast<float>(radius * math::cos(angle));
}

}  // namespace fovea
