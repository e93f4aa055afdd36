#include "kernels/layout/packed_moments.h"

#include "kernels/cpu/cpu.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/packed_adamw.cc"
#include <hwy/foreach_target.h>

#include "base/threads.h"
#include "kernels/cpu/adamw-inl.h"
#include "kernels/cpu/philox-inl.h"
#include "kernels/cpu/stored.h"

HWY_BEFORE_NAMESPACE();
namespace fovea::cpu::HWY_NAMESPACE {

using Integers = hn::RebindToSigned<Floats>;
using Bytes = hn::Rebind<uint8_t, Floats>;
using Words = hn::RebindToUnsigned<Floats>;

// MCode and VCode, a vector at a time.
template <class Code>
HWY_INLINE Vector value_of(hn::Vec<Integers> code) {
  const auto bits = hn::ShiftLeft<Code::kShift>(hn::Add(code, hn::Set(Integers(), Code::kBase)));
  return hn::IfThenElseZero(hn::RebindMask(Floats(), hn::Gt(code, hn::Zero(Integers()))),
                            hn::BitCast(Floats(), bits));
}

template <class Code>
HWY_INLINE hn::Vec<Integers> code_of(Vector x, hn::Vec<Words> random) {
  const auto bits = hn::Add(hn::BitCast(Words(), x), hn::ShiftLeft<Code::kRandomShift>(random));
  const auto code = hn::Sub(hn::BitCast(Integers(), hn::ShiftRight<Code::kShift>(bits)),
                            hn::Set(Integers(), Code::kBase));
  return hn::Min(hn::Max(code, hn::Zero(Integers())), hn::Set(Integers(), Code::kLast));
}

HWY_INLINE hn::Vec<Integers> load_codes(const uint8_t* codes) {
  return hn::PromoteTo(Integers(), hn::LoadU(Bytes(), codes));
}

HWY_INLINE void store_codes(hn::Vec<Integers> code, uint8_t* codes) {
  hn::StoreU(hn::DemoteTo(Bytes(), code), Bytes(), codes);
}

// x / largest, or 0 if all numbers of the block are 0.
HWY_INLINE Vector fraction(Vector x, float largest) {
  return largest > 0 ? hn::Div(x, all(largest)) : all(0);
}

HWY_INLINE float largest_of(const float* x) {
  Vector largest = all(0);
  for (int64_t i = 0; i < kMomentBlock; i += kLanes)
    largest = larger(largest, hn::Abs(hn::LoadU(Floats(), x + i)));
  return hn::GetLane(hn::MaxOfLanes(Floats(), largest));
}

// One block: codes padded to kMomentBlock, and the numbers that they stand for.
struct MomentBlock {
  uint8_t m_codes[kMomentBlock], v_codes[kMomentBlock];
  float m[kMomentBlock], root[kMomentBlock];  // root = sqrt(v)
};

HWY_INLINE void decode(MomentBlock& block, float largest_m, float largest_v) {
  const auto last = hn::Set(Integers(), MCode::kLast);
  for (int64_t i = 0; i < kMomentBlock; i += kLanes) {
    const auto m = load_codes(block.m_codes + i);
    const Vector size = hn::Mul(value_of<MCode>(hn::And(m, last)), all(largest_m));
    const auto negative = hn::RebindMask(Floats(), hn::Gt(m, last));
    hn::StoreU(hn::IfThenElse(negative, hn::Neg(size), size), Floats(), block.m + i);
    const Vector root = hn::Mul(value_of<VCode>(load_codes(block.v_codes + i)), all(largest_v));
    hn::StoreU(root, Floats(), block.root + i);
  }
}

// `first` is the index of the block's first element.
HWY_INLINE void encode(MomentBlock& block, const PackedMoments& moments, int64_t first) {
  const float largest_m = largest_of(block.m), largest_v = largest_of(block.root);
  static_cast<float*>(moments.largest_m.data)[first / kMomentBlock] = largest_m;
  static_cast<float*>(moments.largest_v.data)[first / kMomentBlock] = largest_v;
  alignas(64) uint32_t random[kMomentBlock];
  for (int64_t i = 0; i < kMomentBlock; i += 4 * kCounters)
    philox_words(moments.seed, Stream::moments, moments.parameter,
                 moment_counter(moments.step, first + i), random + i);
  const auto sign = hn::Set(Integers(), 0x80), least = hn::Set(Integers(), 1);
  for (int64_t i = 0; i < kMomentBlock; i += kLanes) {
    const auto word = hn::Load(Words(), random + i);
    const Vector m = hn::LoadU(Floats(), block.m + i);
    const Vector v = fraction(hn::LoadU(Floats(), block.root + i), largest_v);
    const auto low = hn::And(word, hn::Set(Words(), 0xffff));
    const auto m_code = code_of<MCode>(fraction(hn::Abs(m), largest_m), low);
    const auto negative =
        hn::ShiftRight<24>(hn::And(hn::BitCast(Words(), m), hn::Set(Words(), 0x80000000u)));
    store_codes(hn::Or(m_code, hn::And(hn::BitCast(Integers(), negative), sign)),
                block.m_codes + i);
    const auto v_code = code_of<VCode>(v, hn::ShiftRight<16>(word));
    const auto positive = hn::RebindMask(Integers(), hn::Gt(v, all(0)));
    store_codes(hn::Max(v_code, hn::IfThenElseZero(positive, least)), block.v_codes + i);
  }
}

void packed_adamw_step(float* weight, const PackedMoments& moments, const float* gradient,
                       const AdamW& step, int64_t size) {
  auto* const m = static_cast<uint8_t*>(moments.m.data);
  auto* const v = static_cast<uint8_t*>(moments.v.data);
  const auto* const largest_m = static_cast<const float*>(moments.largest_m.data);
  const auto* const largest_v = static_cast<const float*>(moments.largest_v.data);
  const AdamWStep update(step);
  const auto blocks = [&](int64_t begin, int64_t end) HWY_ATTR {
    for (int64_t at = begin; at < end; ++at) {
      const int64_t first = at * kMomentBlock, count = std::min(kMomentBlock, size - first);
      MomentBlock block = {};
      std::copy_n(m + first, count, block.m_codes);
      std::copy_n(v + first, count, block.v_codes);
      decode(block, largest_m[at], largest_v[at]);
      each_vector(count, [&](int64_t i, int64_t, auto access) HWY_ATTR {
        const Vector root = access.load(block.root + i);
        Vector first_moment = access.load(block.m + i), second = hn::Mul(root, root);
        update(access, weight + first + i, first_moment, second, gradient + first + i);
        access.store(first_moment, block.m + i);
        access.store(hn::Sqrt(second), block.root + i);
      });
      encode(block, moments, first);
      std::copy_n(block.m_codes, count, m + first);
      std::copy_n(block.v_codes, count, v + first);
    }
  };
  parallel_for((size + kMomentBlock - 1) / kMomentBlock, kGrainElements / 4 / kMomentBlock, blocks);
}

}  // namespace fovea::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace fovea::cpu {

HWY_EXPORT(packed_adamw_step);

void packed_adamw(Out weight, const PackedMoments& moments, In gradient, const AdamW& step,
                  int64_t size) {
  HWY_DYNAMIC_DISPATCH(packed_adamw_step)
  (static_cast<float*>(weight.data), moments, static_cast<const float*>(gradient.data), step, size);
}

}  // namespace fovea::cpu
#endif
