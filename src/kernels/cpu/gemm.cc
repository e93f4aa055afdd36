#include "base/error.h"
#include "kernels/cpu/cpu.h"
#include "kernels/cpu/gemm_internal.h"

namespace fovea::cpu {
namespace {

void check_dtype(DType dtype, const char* operand) {
  if (dtype == DType::f32 || dtype == DType::bf16) return;
  fail(ErrorKind::Unsupported, "gemm: {} is {}; the CPU multiplies fp32 and bf16", operand,
       name_of(dtype));
}

}  // namespace

void gemm(Out c, In a, In b, In bias, const GemmShape& shape) {
  check_dtype(a.dtype, "a");
  check_dtype(b.dtype, "b");
  check_dtype(c.dtype, "c");
  if (bias.data) check_dtype(bias.dtype, "the bias");
  if (shape.m == 0 || shape.n == 0) return;
  const bool both_bf16 = a.dtype == DType::bf16 && b.dtype == DType::bf16;
  if (both_bf16 && shape.k > 0 && native_bf16()) return gemm_onednn(c, a, b, bias, shape);
  gemm_f32(c, a, b, bias, shape);
}

}  // namespace fovea::cpu
