#include "kernels/cpu/bf16_check.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <iterator>

#include "base/float_mode.h"
#include "fovea/core/random.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/bf16_check.cc"
#include "hwy/foreach_target.h"
// Must follow foreach_target.h.
#include "hwy/highway.h"
#include "kernels/cpu/tiles-inl.h"

HWY_BEFORE_NAMESPACE();
namespace fovea::cpu::HWY_NAMESPACE {
namespace {

constexpr int64_t kWordCount = kTileBytes / 4;

// A, B and C of one product of tiles.
struct Sample {
  alignas(64) uint32_t a[kWordCount], b[kWordCount];
  alignas(64) float c[kWordCount];
};

// Returns tiles whose exponents start at `exponent` in A and B and are about those of the products
// in C. Large exponents reveal the order of sums, small ones the treatment of denormal numbers.
Sample sample(uint32_t exponent) {
  Sample s;
  uint32_t counter = 0;
  const auto random = [&] { return philox(1, Stream::init, exponent, counter++)[0]; };
  const auto half = [&] {
    const uint32_t bits = random(), scale = bits % 16 == 0 ? 0 : exponent + bits / 16 % 16;
    return (bits >> 16 & 0x807f) | scale << 7;
  };
  for (uint32_t& word : s.a) word = half() | half() << 16;
  for (uint32_t& word : s.b) word = half() | half() << 16;
  const uint32_t of_products = exponent > 64 ? 2 * exponent - 127 : 0;
  for (float& c : s.c) {
    const uint32_t bits = random();
    const uint32_t word = (bits & 0x807fffff) | (of_products + (bits >> 23) % 16) << 23;
    std::memcpy(&c, &word, sizeof c);
  }
  return s;
}

template <class Tiles>
Sample multiplied_tiles(Sample s) {
  Tiles tiles;
  TileConfig config;
  for (const int tile : {0, 4, 6}) config.set(tile, kTileSide);
  tiles.configure(config);
  tiles.template load<0>(s.c, 64);
  tiles.template load<4>(s.a, 64);
  tiles.template load<6>(s.b, 64);
  tiles.template multiply_add<0, 4, 6>();
  tiles.template store<0>(s.c, 64);
  tiles.release();
  return s;
}

template <class Pairs>
Sample multiplied_pairs(Sample s) {
  for (int64_t i = 0; i < kWordCount; i += kLanes) {
    const auto sum = Pairs::multiply_add(hn::Load(Words(), s.a + i), hn::Load(Words(), s.b + i),
                                         hn::Load(Floats(), s.c + i));
    hn::Store(sum, Floats(), s.c + i);
  }
  return s;
}

template <class Multiply, class Model>
bool agree(const Multiply& multiply, const Model& model) {
  const FloatMode flush(kFlushToZero);
  const auto same_bits = [](float x, float y) {
    return std::bit_cast<uint32_t>(x) == std::bit_cast<uint32_t>(y);
  };
  for (const uint32_t exponent : {1u, 55u, 63u, 120u}) {
    const Sample s = sample(exponent), native = multiply(s), expected = model(s);
    if (!std::equal(std::begin(native.c), std::end(native.c), expected.c, same_bits)) return false;
  }
  return true;
}

}  // namespace

bool tiles_agree() { return agree(multiplied_tiles<NativeTiles>, multiplied_tiles<ModelTiles>); }
bool pairs_agree() { return agree(multiplied_pairs<NativePairs>, multiplied_pairs<ModelPairs>); }

}  // namespace fovea::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace fovea::cpu {
HWY_EXPORT(tiles_agree);
HWY_EXPORT(pairs_agree);

bool native_tiles_agree() { return HWY_DYNAMIC_DISPATCH(tiles_agree)(); }
bool native_pairs_agree() { return HWY_DYNAMIC_DISPATCH(pairs_agree)(); }

}  // namespace fovea::cpu
#endif
