// The tile registers of AMX and its products of tiles: the CPU's own instructions
// (native_tiles-inl.h), and a software model of them for CPUs that lack them. Included once per
// target.
//
// Each of the eight registers holds up to 16 rows of 64 bytes. A product reads A [rows][16 pairs of
// bf16] and B [16 pairs along k][16 columns][2], and adds to C [rows][16] float32 (Intel, Software
// Developer's Manual, TDPBF16PS): for each element, the products of even k form one chain of fused
// multiply-adds that starts at 0, and those of odd k form a second one; the sum of the two chains
// is added to C. Denormal numbers count as zero and denormal results become zero. The product of
// bytes (TDPBSUD) reads A [rows][64] of signed bytes and B [16 words along k][16 columns][4] of
// unsigned bytes, and adds to C [rows][16] int32.

#if defined(FOVEA_TILES_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef FOVEA_TILES_INL_H_
#undef FOVEA_TILES_INL_H_
#else
#define FOVEA_TILES_INL_H_
#endif

#include <cstring>

#include "kernels/cpu/bf16_pairs-inl.h"
#include "kernels/cpu/tile_config.h"
#if HWY_ARCH_X86
#include "kernels/cpu/native_tiles-inl.h"
#endif

HWY_BEFORE_NAMESPACE();
namespace fovea::cpu::HWY_NAMESPACE {

// The caller's float mode must be kFlushToZero.
class ModelTiles {
 public:
  HWY_INLINE void configure(const TileConfig& config) { config_ = config; }
  HWY_INLINE void release() {}
  template <int kTile>
  HWY_INLINE void zero() {
    std::memset(at_[kTile], 0, kTileBytes);
  }
  template <int kTile>
  HWY_INLINE void load(const void* from, size_t stride) {
    for (size_t row = 0; row < config_.rows[kTile]; ++row)
      std::memcpy(at_[kTile] + row * kWords, static_cast<const char*>(from) + row * stride, 64);
  }
  template <int kTile>
  HWY_INLINE void store(void* to, size_t stride) {
    for (size_t row = 0; row < config_.rows[kTile]; ++row)
      std::memcpy(static_cast<char*>(to) + row * stride, at_[kTile] + row * kWords, 64);
  }
  static HWY_INLINE void narrow_to(bf16* to, Vector v) {
    hn::StoreU(narrow_half(v), hn::Rebind<uint16_t, Floats>(), &to->bits);
  }
  template <int kSum, int kA, int kB>
  HWY_INLINE void multiply_add() {
    const Words words;
    for (size_t row = 0; row < config_.rows[kSum]; ++row) {
      const uint32_t* a = at_[kA] + row * kWords;
      for (size_t column = 0; column < kWords; column += kLanes) {
        Vector even = all(0), odd = all(0);  // lower and upper halves
        for (size_t pair = 0; pair < kWords; ++pair) {
          const auto x = hn::Set(words, a[pair]);
          const auto w = hn::Load(words, at_[kB] + pair * kWords + column);
          even = hn::MulAdd(lower_of(x), lower_of(w), even);
          odd = hn::MulAdd(upper_of(x), upper_of(w), odd);
        }
        auto* sum = reinterpret_cast<float*>(at_[kSum] + row * kWords + column);
        hn::Store(hn::Add(hn::Load(Floats(), sum), hn::Add(even, odd)), Floats(), sum);
      }
    }
  }
  template <int kSum, int kA, int kB>
  HWY_INLINE void multiply_add_bytes() {
    for (size_t row = 0; row < config_.rows[kSum]; ++row) {
      for (size_t column = 0; column < kWords; ++column) {
        uint32_t& sum = at_[kSum][row * kWords + column];
        for (size_t word = 0; word < kWords; ++word) {
          const uint32_t x = at_[kA][row * kWords + word], w = at_[kB][word * kWords + column];
          for (int byte = 0; byte < 32; byte += 8) {
            const auto factor = static_cast<int8_t>(x >> byte);
            const auto weight = static_cast<uint8_t>(w >> byte);
            sum += static_cast<uint32_t>(factor * weight);
          }
        }
      }
    }
  }

 private:
  static constexpr size_t kWords = 16;
  TileConfig config_;
  alignas(64) uint32_t at_[8][kTileSide * kWords];
};

#if !HWY_ARCH_X86
using NativeTiles = ModelTiles;  // no level selects it
#endif

// The registers for up to 32 rows of A: the first 16 rows in register 4, with sums in 0 and 1, the
// following rows in register 5, with sums in 2 and 3. With up to 16 rows, all four sums can belong
// to register 4.
template <class Tiles>
struct TileRegisters : Tiles {
  void configure_rows(int64_t rows) {
    if (rows == rows_) return;
    rows_ = rows;
    const int64_t first = std::min(rows, kTileSide),
                  second = rows > kTileSide ? rows - first : first;
    TileConfig config;
    for (const int tile : {0, 1, 4}) config.set(tile, first);
    for (const int tile : {2, 3, 5}) config.set(tile, second);
    for (const int tile : {6, 7}) config.set(tile, kTileSide);
    Tiles::configure(config);
  }
  void release() {
    if (rows_ > 0) Tiles::release();
    rows_ = 0;
  }

 private:
  int64_t rows_ = 0;
};

}  // namespace fovea::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif
