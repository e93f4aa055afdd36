#include "fovea/core/random.h"

#include <cmath>
#include <numbers>

#include "base/math.h"
#include "base/philox.h"

namespace fovea {
std::array<uint32_t, 4> philox(uint64_t seed, Stream stream, uint32_t substream, uint64_t counter) {
  const PhiloxWords words = philox_words(seed, stream, substream, counter);
  return {words.of[0], words.of[1], words.of[2], words.of[3]};
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
