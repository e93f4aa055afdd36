#include "kernels/cpu/cpu.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/unfold.cc"
#include <hwy/foreach_target.h>

#include <vector>

#include "base/threads.h"
#include "kernels/cpu/simd-inl.h"
#include "kernels/cpu/stored.h"

HWY_BEFORE_NAMESPACE();
namespace fovea::cpu::HWY_NAMESPACE {

void unfold_rows(Out y, In x, const Windows& w) {
  const int64_t width = w.width * w.kernel, count = w.batch * w.count;
  parallel_for(count, grain_of({count, width}), [&](int64_t first, int64_t last) HWY_ATTR {
    std::vector<float> window(static_cast<size_t>(width)), token(static_cast<size_t>(w.width));
    for (int64_t row = first; row < last; ++row) {
      for (int64_t j = 0; j < w.kernel; ++j) {
        const int64_t t = row % w.count * w.stride - w.padding + j;
        const bool inside = t >= 0 && t < w.tokens;
        const int64_t begin = (row / w.count * w.tokens + t) * w.width;
        const float* from = inside ? widened(x, begin, w.width, token.data()) : nullptr;
        for (int64_t c = 0; c < w.width; ++c)
          window[static_cast<size_t>(c * w.kernel + j)] = inside ? from[c] : 0;
      }
      narrow_into(y, row * width, width, window.data());
    }
  });
}

// Each token sums the gradients of the windows that contain it, the last window first.
void fold_rows(Out dx, In dy, const Windows& w) {
  const int64_t width = w.width * w.kernel, count = w.batch * w.tokens;
  parallel_for(count, grain_of({count, width}), [&](int64_t first, int64_t last) HWY_ATTR {
    std::vector<float> sum(static_cast<size_t>(w.width)), window(static_cast<size_t>(width));
    for (int64_t row = first; row < last; ++row) {
      std::fill(sum.begin(), sum.end(), 0.0f);
      for (int64_t j = 0; j < w.kernel; ++j) {
        const int64_t begin = row % w.tokens + w.padding - j;  // start of the window, with padding
        if (begin < 0 || begin % w.stride != 0 || begin / w.stride >= w.count) continue;
        const int64_t from = (row / w.tokens * w.count + begin / w.stride) * width;
        const float* values = widened(dy, from, width, window.data());
        for (int64_t c = 0; c < w.width; ++c)
          sum[static_cast<size_t>(c)] += values[c * w.kernel + j];
      }
      narrow_into(dx, row * w.width, w.width, sum.data());
    }
  });
}

}  // namespace fovea::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace fovea::cpu {

HWY_EXPORT(unfold_rows);
HWY_EXPORT(fold_rows);

void unfold(Out y, In x, const Windows& windows) {
  check_stored_types(y, x);
  HWY_DYNAMIC_DISPATCH(unfold_rows)(y, x, windows);
}

void unfold_backward(Out dx, In dy, const Windows& windows) {
  check_stored_types(dx, dy);
  HWY_DYNAMIC_DISPATCH(fold_rows)(dx, dy, windows);
}

}  // namespace fovea::cpu
#endif
