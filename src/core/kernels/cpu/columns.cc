#include "kernels/cpu/cpu.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/columns.cc"
#include <hwy/foreach_target.h>

#include <vector>

#include "base/threads.h"
#include "kernels/cpu/simd-inl.h"
#include "kernels/cpu/stored.h"

HWY_BEFORE_NAMESPACE();
namespace fovea::cpu::HWY_NAMESPACE {

void copy_rows_of_columns(Out y, In x, const ColumnCopy& c) {
  parallel_for(c.rows, grain_of({c.rows, c.width * c.copies}),
               [&](int64_t first, int64_t last) HWY_ATTR {
                 const auto width = static_cast<size_t>(c.width);
                 std::vector<float> row(width), values(width);
                 for (int64_t r = first; r < last; ++r) {
                   const float* from = widened(x, r * c.from_stride + c.from, c.width, row.data());
                   for (int64_t copy = r * c.copies; copy < (r + 1) * c.copies; ++copy) {
                     std::copy_n(from, width, values.data());  // narrow_into may overwrite it
                     narrow_into(y, copy * c.to_stride + c.to, c.width, values.data());
                   }
                 }
               });
}

void sum_copies_of_columns(Out dx, In dy, const ColumnCopy& c) {
  parallel_for(
      c.rows, grain_of({c.rows, c.width * c.copies}), [&](int64_t first, int64_t last) HWY_ATTR {
        const auto width = static_cast<size_t>(c.width);
        std::vector<float> sum(width), row(width);
        for (int64_t r = first; r < last; ++r) {
          std::fill(sum.begin(), sum.end(), 0.0f);
          for (int64_t copy = r * c.copies; copy < (r + 1) * c.copies; ++copy) {
            const float* values = widened(dy, copy * c.to_stride + c.to, c.width, row.data());
            for (size_t i = 0; i < width; ++i) sum[i] += values[i];
          }
          narrow_into(dx, r * c.from_stride + c.from, c.width, sum.data());
        }
      });
}

}  // namespace fovea::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace fovea::cpu {

HWY_EXPORT(copy_rows_of_columns);
HWY_EXPORT(sum_copies_of_columns);

void copy_columns(Out y, In x, const ColumnCopy& copy) {
  check_stored_types(y, x);
  HWY_DYNAMIC_DISPATCH(copy_rows_of_columns)(y, x, copy);
}

void copy_columns_backward(Out dx, In dy, const ColumnCopy& copy) {
  check_stored_types(dx, dy);
  HWY_DYNAMIC_DISPATCH(sum_copies_of_columns)(dx, dy, copy);
}

}  // namespace fovea::cpu
#endif
