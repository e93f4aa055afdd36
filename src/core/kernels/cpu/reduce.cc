#include "kernels/cpu/cpu.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/reduce.cc"
#include <hwy/foreach_target.h>

#include <numeric>

#include "kernels/cpu/row_blocks-inl.h"
#include "kernels/sum_block.h"

HWY_BEFORE_NAMESPACE();
namespace fovea::cpu::HWY_NAMESPACE {

void sum_all_rows(Out y, In x, Rows rows) {
  const RowBlocks blocks(rows);
  const int64_t width = rows.width, grain = grain_of(rows) / kRowBlock + 1;
  std::vector<float> partial(static_cast<size_t>(blocks.count() * width));
  parallel_for(blocks.count(), grain, [&](int64_t first, int64_t last) HWY_ATTR {
    std::vector<float> scratch(static_cast<size_t>(width));
    for (int64_t block = first; block < last; ++block) {
      for (int64_t i = blocks.begin(block); i < blocks.end(block); ++i)
        add_floats(partial.data() + block * width, widened(x, i * width, width, scratch.data()),
                   width);
    }
  });
  add_blocks(y, partial.data(), blocks, width, width);
}

using Doubles = hn::ScalableTag<double>;
using DoubleVector = hn::Vec<Doubles>;
using HalfFloats = hn::Rebind<float, Doubles>;

// Returns the sum of f(x) over a block, in 16 partial sums on every target.
template <class F>
HWY_INLINE double block_sum(const float* x, int64_t count, const F& f) {
  constexpr int64_t kDoubleLanes = HWY_LANES(double), kDoubleParts = 16 / kDoubleLanes;
  const Doubles d;
  DoubleVector sums[kDoubleParts];
  std::fill_n(sums, kDoubleParts, hn::Zero(d));
  const auto add_vectors = [&](const float* from) HWY_ATTR {
    for (int64_t part = 0; part < kDoubleParts; ++part) {
      const auto v = hn::PromoteTo(d, hn::LoadU(HalfFloats(), from + part * kDoubleLanes));
      sums[part] = hn::Add(sums[part], f(v));
    }
  };
  int64_t i = 0;
  for (; i + 16 <= count; i += 16) add_vectors(x + i);
  float rest[16] = {};
  std::copy_n(x + i, count - i, rest);
  add_vectors(rest);
  for (int64_t half = kDoubleParts / 2; half > 0; half /= 2) {
    for (int64_t part = 0; part < half; ++part) sums[part] = hn::Add(sums[part], sums[part + half]);
  }
  alignas(64) double lanes[kDoubleLanes];
  hn::Store(sums[0], d, lanes);
  for (int64_t half = kDoubleLanes / 2; half > 0; half /= 2) {
    for (int64_t lane = 0; lane < half; ++lane) lanes[lane] += lanes[lane + half];
  }
  return lanes[0];
}

template <class F>
double sum_with(In x, int64_t size, const F& f) {
  constexpr int64_t kBlock = kSumBlock;
  const int64_t blocks = (size + kBlock - 1) / kBlock;
  std::vector<double> partial(static_cast<size_t>(blocks));
  parallel_for(blocks, kGrainElements / kBlock, [&](int64_t first, int64_t last) HWY_ATTR {
    float scratch[kBlock];
    for (int64_t block = first; block < last; ++block) {
      const int64_t begin = block * kBlock, count = std::min(kBlock, size - begin);
      partial[static_cast<size_t>(block)] = block_sum(widened(x, begin, count, scratch), count, f);
    }
  });
  return std::accumulate(partial.begin(), partial.end(), 0.0);
}

double sum_all(In x, int64_t size) {
  return sum_with(x, size, [](DoubleVector v) HWY_ATTR { return v; });
}

double sum_all_squares(In x, int64_t size) {
  return sum_with(x, size, [](DoubleVector v) HWY_ATTR { return hn::Mul(v, v); });
}

}  // namespace fovea::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace fovea::cpu {

HWY_EXPORT(sum_all_rows);
HWY_EXPORT(sum_all);
HWY_EXPORT(sum_all_squares);

void sum_rows(Out y, In x, Rows rows) {
  check_stored_types(y, x);
  HWY_DYNAMIC_DISPATCH(sum_all_rows)(y, x, rows);
}

double sum(In x, int64_t size) {
  check_stored_types(x);
  return HWY_DYNAMIC_DISPATCH(sum_all)(x, size);
}

double sum_of_squares(In x, int64_t size) {
  check_stored_types(x);
  return HWY_DYNAMIC_DISPATCH(sum_all_squares)(x, size);
}

}  // namespace fovea::cpu
#endif
