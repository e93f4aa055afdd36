// Random words, a vector at a time: philox() of fovea/core/random.h for consecutive counters.

#if defined(FOVEA_KERNELS_CPU_PHILOX_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef FOVEA_KERNELS_CPU_PHILOX_INL_H_
#undef FOVEA_KERNELS_CPU_PHILOX_INL_H_
#else
#define FOVEA_KERNELS_CPU_PHILOX_INL_H_
#endif

#include <hwy/highway.h>

#include <cstdint>

#include "fovea/core/random.h"

HWY_BEFORE_NAMESPACE();
namespace fovea::cpu::HWY_NAMESPACE {

// A counter per 64-bit lane. Only the lower halves of the lanes matter during the rounds: the
// widening multiply ignores the upper halves, so its products need no masking.
using Counters = hwy::HWY_NAMESPACE::ScalableTag<uint64_t>;
constexpr int64_t kCounters = HWY_LANES(uint64_t);

// words[4 * kCounters] = the words of counters [counter, counter + kCounters), four per counter.
HWY_INLINE void philox_words(uint64_t seed, Stream stream, uint32_t substream, uint64_t counter,
                             uint32_t* words) {
  namespace hn = hwy::HWY_NAMESPACE;
  const Counters d;
  const hn::RepartitionToNarrow<Counters> halves;
  const auto product = [&](auto x, uint64_t multiplier) HWY_ATTR {
    return hn::MulEven(hn::BitCast(halves, x), hn::BitCast(halves, hn::Set(d, multiplier)));
  };
  const auto counters = hn::Add(hn::Iota(d, 0), hn::Set(d, counter));
  auto x0 = counters, x1 = hn::ShiftRight<32>(counters);
  auto x2 = hn::Set(d, substream), x3 = hn::Set(d, static_cast<uint64_t>(stream));
  uint32_t key0 = static_cast<uint32_t>(seed), key1 = static_cast<uint32_t>(seed >> 32);
  for (int round = 0; round < 10; ++round, key0 += 0x9E3779B9u, key1 += 0xBB67AE85u) {
    const auto product0 = product(x0, 0xD2511F53), product1 = product(x2, 0xCD9E8D57);
    x0 = hn::Xor(hn::ShiftRight<32>(product1), hn::Xor(x1, hn::Set(d, key0)));
    x2 = hn::Xor(hn::ShiftRight<32>(product0), hn::Xor(x3, hn::Set(d, key1)));
    x1 = product1;
    x3 = product0;
  }
  const auto lower = hn::Set(d, 0xffffffffu);
  const auto first = hn::Or(hn::And(x0, lower), hn::ShiftLeft<32>(x1));
  const auto second = hn::Or(hn::And(x2, lower), hn::ShiftLeft<32>(x3));
  hn::StoreInterleaved2(first, second, d, reinterpret_cast<uint64_t*>(words));
}

}  // namespace fovea::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
