// Shared by the kernels: vectors of floats from any stored type, and loops whose sums have the same
// bits for every vector width. Included once per target; the include guard toggles for this.

#if defined(FOVEA_KERNELS_CPU_SIMD_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef FOVEA_KERNELS_CPU_SIMD_INL_H_
#undef FOVEA_KERNELS_CPU_SIMD_INL_H_
#else
#define FOVEA_KERNELS_CPU_SIMD_INL_H_
#endif

#include <hwy/highway.h>

#include <algorithm>
#include <cstdint>

#include "base/dtype.h"
#include "kernels/kernels.h"

HWY_BEFORE_NAMESPACE();
namespace fovea::cpu::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

using Floats = hn::ScalableTag<float>;
using Vector = hn::Vec<Floats>;
constexpr int64_t kLanes = HWY_LANES(float);

// A sum uses this many partial sums on every target, combined in one order. 32 are two AVX-512,
// four AVX2 or eight NEON accumulators: enough to hide most of an addition's latency.
constexpr int64_t kPartialSums = 32;
constexpr int64_t kParts = kPartialSums / kLanes;

HWY_INLINE Vector all(float x) { return hn::Set(Floats(), x); }

// The smaller or larger number of each lane. If an operand is NaN, or both are zeros, the second
// operand: as x86's instructions do, unlike NEON's.
#if HWY_ARCH_X86
HWY_INLINE Vector smaller(Vector a, Vector b) { return hn::Min(a, b); }
HWY_INLINE Vector larger(Vector a, Vector b) { return hn::Max(a, b); }
#else
HWY_INLINE Vector smaller(Vector a, Vector b) { return hn::IfThenElse(hn::Lt(a, b), a, b); }
HWY_INLINE Vector larger(Vector a, Vector b) { return hn::IfThenElse(hn::Gt(a, b), a, b); }
#endif

// How a step of a loop accesses memory: a whole vector, or its first few lanes (the other lanes
// load as 0).
struct Whole {
  HWY_INLINE Vector load(const float* x) const { return hn::LoadU(Floats(), x); }
  HWY_INLINE void store(Vector v, float* y) const { hn::StoreU(v, Floats(), y); }
  HWY_INLINE Vector keep(Vector next, Vector) const { return next; }
};
struct First {
  int64_t count;
  hn::Mask<Floats> mask;
  explicit HWY_INLINE First(int64_t first)
      : count(first), mask(hn::FirstN(Floats(), static_cast<size_t>(first))) {}
#if HWY_ARCH_X86
  HWY_INLINE Vector load(const float* x) const { return hn::MaskedLoad(mask, Floats(), x); }
  HWY_INLINE void store(Vector v, float* y) const { hn::BlendedStore(v, mask, Floats(), y); }
#else  // without instructions for this, Highway would access the other lanes too
  HWY_INLINE Vector load(const float* x) const {
    HWY_ALIGN float lanes[kLanes] = {};
    std::copy_n(x, count, lanes);
    return hn::Load(Floats(), lanes);
  }
  HWY_INLINE void store(Vector v, float* y) const {
    HWY_ALIGN float lanes[kLanes];
    hn::Store(v, Floats(), lanes);
    std::copy_n(lanes, count, y);
  }
#endif
  HWY_INLINE Vector keep(Vector next, Vector old) const { return hn::IfThenElse(mask, next, old); }
};

// Calls step(i, part, access) for consecutive vectors that cover [0, count); i is the index of the
// first element of a vector. The remainder uses the same code, so that a number's result does not
// depend on its position; `part` is the vector's index among the partial sums.
template <class Step>
HWY_INLINE void each_vector(int64_t count, const Step& step) {
  int64_t i = 0;
  for (; i + kPartialSums <= count; i += kPartialSums) {
    for (int64_t part = 0; part < kParts; ++part) step(i + part * kLanes, part, Whole());
  }
  for (int64_t part = 0; i < count; i += kLanes, ++part) {
    step(i, part, First(std::min(count - i, kLanes)));
  }
}

// y[i] = f(x[i]...)
template <class F, class... Inputs>
HWY_INLINE void map(float* y, int64_t count, const F& f, const Inputs*... x) {
  each_vector(count, [&](int64_t i, int64_t, auto access)
                         HWY_ATTR { access.store(f(access.load(x + i)...), y + i); });
}

// Adds the upper half to the lower one until one lane is left. The order of hn::SumOfLanes depends
// on Highway's version.
template <class D>
HWY_INLINE hn::TFromD<D> sum_of_lanes(D, hn::Vec<D> v) {
  if constexpr (hn::MaxLanes(D()) > 1) {
    const hn::Half<D> half;
    return sum_of_lanes(half, hn::Add(hn::LowerHalf(half, v), hn::UpperHalf(half, v)));
  } else {
    return hn::GetLane(v);
  }
}

class Sum {
 public:
  HWY_INLINE Sum() { std::fill_n(parts_, kParts, all(0)); }
  // Adds x, or a * b, in the lanes of `access`.
  template <class Access>
  HWY_INLINE void add(Vector x, int64_t part, Access access) {
    parts_[part] = access.keep(hn::Add(parts_[part], x), parts_[part]);
  }
  template <class Access>
  HWY_INLINE void add_product(Vector a, Vector b, int64_t part, Access access) {
    parts_[part] = access.keep(hn::MulAdd(a, b, parts_[part]), parts_[part]);
  }
  HWY_INLINE float total() {
    for (int64_t half = kParts / 2; half > 0; half /= 2) {
      for (int64_t i = 0; i < half; ++i) parts_[i] = hn::Add(parts_[i], parts_[i + half]);
    }
    return sum_of_lanes(Floats(), parts_[0]);
  }

 private:
  Vector parts_[kParts];
};

HWY_INLINE Vector widen_half(hn::Vec<hn::Rebind<uint16_t, Floats>> bits) {
  return hn::BitCast(Floats(),
                     hn::ShiftLeft<16>(hn::PromoteTo(hn::RebindToUnsigned<Floats>(), bits)));
}

// Like narrow() of base/dtype.h: rounds to the nearest, ties to even; a NaN becomes quiet.
HWY_INLINE hn::Vec<hn::Rebind<uint16_t, Floats>> narrow_half(Vector x) {
  const hn::RebindToUnsigned<Floats> words;
  const auto bits = hn::BitCast(words, x);
  const auto odd = hn::And(hn::ShiftRight<16>(bits), hn::Set(words, 1));
  const auto rounded = hn::Add(bits, hn::Add(odd, hn::Set(words, 0x7fff)));
  const auto quiet = hn::Or(bits, hn::Set(words, 0x400000));
  const auto chosen = hn::IfThenElse(hn::RebindMask(words, hn::IsNaN(x)), quiet, rounded);
  return hn::TruncateTo(hn::Rebind<uint16_t, Floats>(), hn::ShiftRight<16>(chosen));
}

HWY_NOINLINE inline void widen_all(float* y, const bf16* x, int64_t count) {
  const hn::Rebind<uint16_t, Floats> halves;
  int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    hn::StoreU(widen_half(hn::LoadU(halves, &x[i].bits)), Floats(), y + i);
  }
  for (; i < count; ++i) y[i] = widen(x[i]);
}

HWY_NOINLINE inline void narrow_all(bf16* y, const float* x, int64_t count) {
  const hn::Rebind<uint16_t, Floats> halves;
  int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    hn::StoreU(narrow_half(hn::LoadU(Floats(), x + i)), halves, &y[i].bits);
  }
  for (; i < count; ++i) y[i] = narrow(x[i]);
}

// Returns elements [begin, begin + count) of x as floats: in place if they are floats, else widened
// into `scratch`. A few KB at a time stay in the first-level cache, so bf16 costs little and a
// kernel needs no separate body per stored type.
HWY_INLINE const float* widened(In x, int64_t begin, int64_t count, float* scratch) {
  if (x.dtype == DType::f32) return static_cast<const float*>(x.data) + begin;
  widen_all(scratch, static_cast<const bf16*>(x.data) + begin, count);
  return scratch;
}

// Returns where to write results for elements from `begin` on: y itself if it is f32 without `add`,
// else `scratch`, from which narrow_into() then copies them to y.
HWY_INLINE float* room_for(Out y, int64_t begin, float* scratch) {
  return y.data != nullptr && y.dtype == DType::f32 && !y.add ? static_cast<float*>(y.data) + begin
                                                              : scratch;
}

HWY_NOINLINE inline void add_floats(float* y, const float* x, int64_t count) {
  map(y, count, [](Vector a, Vector b) HWY_ATTR { return hn::Add(a, b); }, y, x);
}

// y[begin, begin + count) (+)= the values that were written to the result of room_for(), rounded
// once. Does nothing if y is null. May overwrite `values`.
HWY_NOINLINE inline void narrow_into(Out y, int64_t begin, int64_t count, float* values) {
  if (y.data == nullptr) return;
  if (y.dtype == DType::f32) {
    float* to = static_cast<float*>(y.data) + begin;
    if (y.add)
      add_floats(to, values, count);
    else if (to != values)
      std::copy_n(values, count, to);
    return;
  }
  bf16* to = static_cast<bf16*>(y.data) + begin;
  if (y.add) {
    constexpr int64_t kBlock = 256;
    float old[kBlock];
    for (int64_t i = 0; i < count; i += kBlock) {
      const int64_t size = std::min(kBlock, count - i);
      widen_all(old, to + i, size);
      add_floats(values + i, old, size);
    }
  }
  narrow_all(to, values, count);
}

}  // namespace fovea::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
