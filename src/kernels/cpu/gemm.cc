#include <vector>

#include "base/error.h"
#include "kernels/cpu/cpu.h"
#include "kernels/cpu/gemm_internal.h"
#include "kernels/sum_tree.h"

namespace fovea::cpu {
namespace {

void check_dtype(DType dtype, const char* operand) {
  if (dtype == DType::f32 || dtype == DType::bf16) return;
  fail(ErrorKind::Unsupported, "gemm: {} is {}; the CPU multiplies fp32 and bf16", operand,
       name_of(dtype));
}

void multiply(Out c, In a, In b, In bias, const GemmShape& shape) {
  const bool both_bf16 = a.dtype == DType::bf16 && b.dtype == DType::bf16;
  if (both_bf16 && shape.k > 0 && native_bf16()) return gemm_onednn(c, a, b, bias, shape);
  gemm_f32(c, a, b, bias, shape);
}

In from_row(In x, int64_t row, int64_t width) {
  const int64_t bytes = row * width * static_cast<int64_t>(size_of(x.dtype));
  return {static_cast<const char*>(x.data) + bytes, x.dtype};
}

// The product of each unit on its own.
void multiply_units(Out c, In a, In b, const GemmShape& shape) {
  check(shape.transpose_a && !shape.transpose_b,
        "gemm: units without rows; expected a [k, m] and b [k, n]");
  const int64_t size = shape.m * shape.n, units = shape.units.count;
  std::vector<float> sums(static_cast<size_t>(SumTree::places(units) * size));
  const auto sum_at = [&](int place, bool added) {
    return Out{sums.data() + place * size, DType::f32, added};
  };
  const auto merge = [&](int place) {
    convert(sum_at(place - 1, true), {sum_at(place, false).data}, size);
  };
  SumTree tree;
  for (int64_t unit = 0; unit < units; ++unit) {
    const int64_t row = shape.units.start(unit, shape.k);
    const GemmShape part = {shape.m, shape.n, shape.units.start(unit + 1, shape.k) - row, true,
                            false};
    multiply(sum_at(tree.next(unit, merge), false), from_row(a, row, shape.m),
             from_row(b, row, shape.n), {}, part);
  }
  tree.finish(merge);
  convert(c, {sums.data()}, size);
}

}  // namespace

void gemm(Out c, In a, In b, In bias, const GemmShape& shape) {
  check_dtype(a.dtype, "a");
  check_dtype(b.dtype, "b");
  check_dtype(c.dtype, "c");
  if (bias.data) check_dtype(bias.dtype, "the bias");
  if (shape.m == 0 || shape.n == 0) return;
  if (shape.units.count > 1) return multiply_units(c, a, b, shape);
  multiply(c, a, b, bias, shape);
}

}  // namespace fovea::cpu
