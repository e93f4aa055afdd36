#include "kernels/cpu/cpu.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/dropout.cc"
#include <hwy/foreach_target.h>

#include "kernels/cpu/map-inl.h"
#include "kernels/cpu/philox-inl.h"

HWY_BEFORE_NAMESPACE();
namespace fovea::cpu::HWY_NAMESPACE {

// Sets factors [kBlock] to 0 or 1 / (1 - probability). `number`, a multiple of 4, is the index of
// the first element in the random stream.
HWY_INLINE void block_factors(const Dropout& dropout, int64_t number, float* factors) {
  const hn::RebindToSigned<Floats> integers;
  // uniform(word) = (word >> 8) / 2^24; comparing the numerator avoids the division and is exact.
  const Vector limit = all(dropout.probability * 0x1p24f);
  const Vector kept = all(1 / (1 - dropout.probability));
  const uint64_t counter = (dropout.step << 32) + static_cast<uint64_t>(number) / 4;
  for (int64_t i = 0; i < kBlock; i += 4 * kCounters) {
    alignas(64) uint32_t words[4 * kCounters];
    philox_words(dropout.seed, Stream::dropout, dropout.substream,
                 counter + static_cast<uint64_t>(i) / 4, words);
    for (int64_t j = 0; j < 4 * kCounters; j += kLanes) {
      const auto word = hn::Load(hn::RebindToUnsigned<Floats>(), words + j);
      const Vector drawn = hn::ConvertTo(Floats(), hn::BitCast(integers, hn::ShiftRight<8>(word)));
      hn::StoreU(hn::IfThenZeroElse(hn::Lt(drawn, limit), kept), Floats(), factors + i + j);
    }
  }
}

// Applies dropout to `size` elements, starting at `from`. `number` is the index of the first one in
// the random stream.
void drop(Out y, In x, const Dropout& dropout, int64_t from, int64_t size, int64_t number) {
  const auto blocks = [&](int64_t first, int64_t last) HWY_ATTR {
    FloatBlock factors, input, output;
    for (int64_t block = first; block < last; ++block) {
      const int64_t done = block * kBlock, begin = from + done;
      const int64_t count = std::min(kBlock, size - done);
      block_factors(dropout, number + done, factors.values);
      float* room = room_for(y, begin, output.values);
      // A dropped element is 0 even where x is infinite or NaN.
      const auto apply = [](Vector v, Vector factor) HWY_ATTR {
        return hn::IfThenElseZero(hn::Gt(factor, all(0)), hn::Mul(v, factor));
      };
      map(room, count, apply, widened(x, begin, count, input.values), factors.values);
      narrow_into(y, begin, count, room);
    }
  };
  parallel_for((size + kBlock - 1) / kBlock, kGrainElements / kBlock, blocks);
}

}  // namespace fovea::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace fovea::cpu {

HWY_EXPORT(drop);

void dropout(Out y, In x, const Dropout& dropout, int64_t size) {
  check_stored_types(y, x);
  const auto drop_from = HWY_DYNAMIC_DISPATCH(drop);
  const int64_t unit = size / dropout.units, counted = (unit + 3) / 4 * 4;
  if (unit == counted) return drop_from(y, x, dropout, 0, size, dropout.first_unit * counted);
  for (int64_t u = 0; u < dropout.units; ++u)
    drop_from(y, x, dropout, u * unit, unit, (dropout.first_unit + u) * counted);
}

}  // namespace fovea::cpu
#endif
