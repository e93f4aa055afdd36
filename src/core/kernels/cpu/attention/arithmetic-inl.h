// The arithmetic of attention: exact, or with operands in bf16; included once per target.

#if defined(FOVEA_KERNELS_CPU_ATTENTION_ARITHMETIC_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef FOVEA_KERNELS_CPU_ATTENTION_ARITHMETIC_INL_H_
#undef FOVEA_KERNELS_CPU_ATTENTION_ARITHMETIC_INL_H_
#else
#define FOVEA_KERNELS_CPU_ATTENTION_ARITHMETIC_INL_H_
#endif

#include <type_traits>

#include "kernels/cpu/attention/simd-inl.h"
#include "kernels/cpu/words-inl.h"
#include "kernels/isa.h"

HWY_BEFORE_NAMESPACE();
namespace fovea::cpu {
namespace HWY_NAMESPACE {

// How queries are multiplied with keys, and weights with values. With `kRounds`, queries and
// weights are rounded to bf16, and words of two numbers are multiplied or, with the same bits, the
// two numbers one after the other. kPair numbers share an element of the left operand. kColumns are
// the columns that are processed at once.
template <class Stored>
struct ExactFloats : FloatNumbers<Stored> {
  static constexpr bool kRounds = false;
  static constexpr int64_t kPair = 1, kColumns = kPanel;
};

template <class Pairs>
struct Bf16Words : PairNumbers<Pairs> {
  static constexpr bool kRounds = true;
  static constexpr int64_t kPair = 2, kColumns = 2 * kPanel;

  // Stores the numbers of two vectors, rounded, and returns sum + the numbers 2i + the numbers 2i +
  // 1 of these.
  static HWY_INLINE Vector round(Vector first, Vector second, uint32_t* to, Vector sum) {
    const WordVector pairs = Pairs::round(first, second), ones = hn::Set(Words(), 0x3f803f80u);
    hn::Store(pairs, Words(), to);
    return Pairs::multiply_add(pairs, ones, sum);
  }
};

struct Bf16Floats : FloatNumbers<float> {
  static constexpr bool kRounds = true;
  static constexpr int64_t kPair = 1, kColumns = 2 * kPanel;

  static HWY_INLINE Vector round(Vector first, Vector second, float* to, Vector sum) {
    const Floats tag;
    first = widen_half(narrow_half(first));
    second = widen_half(narrow_half(second));
    hn::Store(first, tag, to);
    hn::Store(second, tag, to + kLanes);
    sum = hn::Add(sum, hn::ConcatEven(tag, second, first));
    return hn::Add(sum, hn::ConcatOdd(tag, second, first));
  }
};

// Multiplies scores [rows, kTile] by scales [kTile], or by `factor` if scales is null.
HWY_INLINE void scale_scores(float* HWY_RESTRICT scores, int64_t rows, Columns columns,
                             const float* HWY_RESTRICT scales, float factor = 1) {
  const Floats tag;
  for (int64_t c = columns.begin; c < columns.end; c += kLanes) {
    const Vector scale = scales != nullptr ? hn::LoadU(tag, scales + c) : all(factor);
    for (int64_t r = 0; r < rows; ++r) {
      float* score = scores + r * kTile + c;
      hn::Store(hn::Mul(hn::Load(tag, score), scale), tag, score);
    }
  }
}

// Returns the number of elements of the left operand that hold `count` numbers. A word is always
// complete: on every CPU, an odd count is padded with a product of zeros.
template <class Arithmetic>
constexpr int64_t elements_of(int64_t count) {
  return Arithmetic::kRounds ? round_up(count, 2) / Arithmetic::kPair : count;
}

// Calls use() with the arithmetic for operands of a call, which are stored as bf16 or not.
template <class Use>
void with_arithmetic(bool halves, Use&& use) {
  if (!halves) return use(ExactFloats<float>());
  switch (bf16_products()) {
    case Bf16Products::pairs: return use(Bf16Words<NativePairs>());
    case Bf16Products::model_pairs: return use(Bf16Words<ModelPairs>());
    default: return use(Bf16Floats());  // with AMX too: it multiplies fp32 faster than pairs
  }
}

// Sets words [round_up(width, 32) / 2] to the numbers of a row, then zeros.
inline void load_words(uint32_t* HWY_RESTRICT to, const bf16* from, int64_t width) {
  const auto put = [&](int64_t d, const bf16* numbers)
                       HWY_ATTR { hn::Store(load_pairs(numbers), Words(), to + d / 2); };
  const int64_t whole = width / (2 * kPanel) * (2 * kPanel);
  for (int64_t d = 0; d < whole; d += 2 * kLanes) put(d, from + d);
  if (whole == width) return;
  alignas(64) bf16 rest[2 * kPanel] = {};
  std::copy_n(from + whole, width - whole, rest);
  for (int64_t d = 0; d < 2 * kPanel; d += 2 * kLanes) put(whole + d, rest + d);
}

// The stored rows of a tile of keys or values in bf16.
struct HalfRows {
  const bf16* data;
  int64_t stride, count, width;

  HalfRows(const KeyRows& x, const QueryRows& queries, int64_t tile)
      : data(static_cast<const bf16*>(x.x.data) + queries.key_offset(tile, x.width)),
        stride(queries.shape.kv_heads * x.width),
        count(std::min(kTile, queries.shape.keys - tile)),
        width(x.width) {}
  // words [padded(width) / 2, kTile]: word i of each row; zeros after the last row.
  void transpose(uint32_t* words) const {
    pack_transposed<ChainPairs>(data, stride, width, count, reinterpret_cast<float*>(words),
                                padded(width) / 2, kTile);
  }
  // words [kTile / 2, padded(width)], each of the numbers of two rows; zeros after the last row.
  void pair(uint32_t* words) const {
    pack_across<ChainPairs>(data, stride, count, width, reinterpret_cast<float*>(words), kTile / 2,
                            padded(width));
  }
};

}  // namespace HWY_NAMESPACE
}  // namespace fovea::cpu
HWY_AFTER_NAMESPACE();

#endif
