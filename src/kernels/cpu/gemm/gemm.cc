#include "base/error.h"
#include "kernels/cpu/cpu.h"
#include "kernels/cpu/gemm/internal.h"
#include "kernels/isa.h"

namespace fovea::cpu {
namespace {

void check_dtype(DType dtype, const char* operand) {
  if (dtype == DType::f32 || dtype == DType::bf16) return;
  fail(ErrorKind::Unsupported, "gemm: {} is {}; expected fp32 or bf16", operand, name_of(dtype));
}

}  // namespace

void gemm(Out c, In a, In b, In bias, const GemmShape& shape) {
  check_dtype(a.dtype, "a");
  check_dtype(b.dtype, "b");
  check_dtype(c.dtype, "c");
  if (bias.data) check_dtype(bias.dtype, "the bias");
  check(shape.units.count == 1 || (shape.transpose_a && !shape.transpose_b && !bias.data),
        "gemm: {} units; expected 1, or a [k, m], b [k, n] and no bias", shape.units.count);
  if (shape.m == 0 || shape.n == 0) return;
  const bool both_bf16 = a.dtype == DType::bf16 && b.dtype == DType::bf16;
  switch (both_bf16 ? bf16_products() : Bf16Products::widened) {
    case Bf16Products::widened: return gemm_vectors(c, a, b, bias, shape, VectorProducts::floats);
    case Bf16Products::pairs: return gemm_vectors(c, a, b, bias, shape, VectorProducts::pairs);
    case Bf16Products::model_pairs:
      return gemm_vectors(c, a, b, bias, shape, VectorProducts::model_pairs);
    case Bf16Products::tiles: return gemm_tiles(c, a, b, bias, shape, true);
    case Bf16Products::model_tiles: return gemm_tiles(c, a, b, bias, shape, false);
  }
}

}  // namespace fovea::cpu
