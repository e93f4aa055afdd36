#pragma once

// philox() of fovea/core/random.h, for the host and for kernels of a GPU.

#include "base/portable.h"
#include "fovea/core/random.h"

namespace fovea {

struct PhiloxWords {
  uint32_t of[4];

  // The word of a number of the stream, without an index into registers.
  PORTABLE uint32_t word(uint64_t number) const {
    const uint32_t low = number % 2 == 0 ? of[0] : of[1], high = number % 2 == 0 ? of[2] : of[3];
    return number % 4 < 2 ? low : high;
  }
};

PORTABLE inline PhiloxWords philox_words(uint64_t seed, Stream stream, uint32_t substream,
                                         uint64_t counter) {
  // The multipliers and key increments of Philox4x32 (Salmon et al. 2011, table 2 and section 3.3).
  constexpr uint64_t kMultiplier0 = 0xD2511F53, kMultiplier1 = 0xCD9E8D57;
  constexpr uint32_t kWeyl0 = 0x9E3779B9, kWeyl1 = 0xBB67AE85;
  constexpr int kRounds = 10;
  PhiloxWords x = {{static_cast<uint32_t>(counter), static_cast<uint32_t>(counter >> 32), substream,
                    static_cast<uint32_t>(stream)}};
  uint32_t key0 = static_cast<uint32_t>(seed), key1 = static_cast<uint32_t>(seed >> 32);
  for (int round = 0; round < kRounds; ++round) {
    const uint64_t product0 = kMultiplier0 * x.of[0], product1 = kMultiplier1 * x.of[2];
    x = {{static_cast<uint32_t>(product1 >> 32) ^ x.of[1] ^ key0, static_cast<uint32_t>(product1),
          static_cast<uint32_t>(product0 >> 32) ^ x.of[3] ^ key1, static_cast<uint32_t>(product0)}};
    key0 += kWeyl0;
    key1 += kWeyl1;
  }
  return x;
}

}  // namespace fovea
