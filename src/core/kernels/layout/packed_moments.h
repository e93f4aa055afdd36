#pragma once

// The codes of the moments of AdamW in 8 bits. A fraction x in [0, 1] is stored as the upper bits
// of its float, less those of the smallest fraction: 4 bits of the exponent and 3 of the mantissa
// for |m|, whose code also has a sign bit, and 4 bits of each for sqrt(v). Code 0 is 0. The largest
// code is 1; the smallest fraction is about 2^-16, below which |m| becomes 0 and sqrt(v) the
// smallest fraction, since a denominator of 0 would give a huge step.
//
// A fraction is rounded to one of the two nearest codes at random, by its distance from them: if it
// were rounded to the nearest, a moment that changes by less than half a code per step would never
// change.

#include <algorithm>
#include <bit>
#include <cstdint>

namespace fovea {

template <int mantissa_bits, int codes>
struct FractionCode {
  static constexpr int kShift = 23 - mantissa_bits;                       // of a float's bits
  static constexpr int32_t kBase = (127 << mantissa_bits) - (codes - 1);  // 1 has the last code
  static constexpr int kRandomBits = 16;                                  // of a random word
  static constexpr int kRandomShift = kShift - kRandomBits;
  static constexpr int32_t kLast = codes - 1;

  // `random` has 16 bits.
  static constexpr int32_t of(float x, uint32_t random) {
    const uint32_t bits = std::bit_cast<uint32_t>(x) + (random << kRandomShift);
    return std::clamp(static_cast<int32_t>(bits >> kShift) - kBase, 0, kLast);
  }
  static constexpr float value(int32_t code) {
    return code == 0 ? 0 : std::bit_cast<float>(static_cast<uint32_t>(code + kBase) << kShift);
  }
};

using MCode = FractionCode<3, 128>;
using VCode = FractionCode<4, 256>;

// The words of philox() for moments: word `index` % 4 of counter (step << 32) + index / 4. Its
// lower half is for m, its upper half for v.
constexpr uint64_t moment_counter(uint64_t step, int64_t index) {
  return (step << 32) + static_cast<uint64_t>(index) / 4;
}

}  // namespace fovea
