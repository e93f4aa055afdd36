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

void multiply(const Product& p) {
  check_dtype(p.a.dtype, "a");
  check_dtype(p.b.dtype, "b");
  check_dtype(p.c.dtype, "c");
  if (p.bias.data) check_dtype(p.bias.dtype, "the bias");
  if (p.m == 0 || p.n == 0) return;
  switch (p.bf16_pairs ? bf16_products() : Bf16Products::widened) {
    case Bf16Products::widened: return gemm_vectors(p, VectorProducts::floats);
    case Bf16Products::pairs: return gemm_vectors(p, VectorProducts::pairs);
    case Bf16Products::model_pairs: return gemm_vectors(p, VectorProducts::model_pairs);
    case Bf16Products::tiles: return gemm_tiles(p, true);
    case Bf16Products::model_tiles: return gemm_tiles(p, false);
  }
}

// Multiplies, with the shape's second pair of operands if it has one.
void multiply(Product p, Out c, const GemmShape& shape) {
  const auto& [a, b, k] = shape.second;
  if (k == 0) return multiply(p);
  check(
      shape.units.count == 1 && !shape.transpose_a && a.dtype == p.a.dtype && b.dtype == p.b.dtype,
      "gemm: {} units, a is {}transposed, second operands {} and {}; expected 1, not transposed, "
      "{} and {}",
      shape.units.count, shape.transpose_a ? "" : "not ", name_of(a.dtype), name_of(b.dtype),
      name_of(p.a.dtype), name_of(p.b.dtype));
  const Product second(c, a, b, {}, {shape.m, shape.n, k, false, shape.transpose_b});
  p.second = &second;
  multiply(p);
}

}  // namespace

void gemm(Out c, In a, In b, In bias, const GemmShape& shape) {
  check(shape.units.count == 1 || (shape.transpose_a && !shape.transpose_b && !bias.data),
        "gemm: {} units; expected 1, or a [k, m], b [k, n] and no bias", shape.units.count);
  multiply({c, a, b, bias, shape}, c, shape);
}

void packed_gemm(Out c, In a, const PackedMatrix& w, In bias, const GemmShape& shape) {
  check_packed_gemm(w, shape);
  multiply({c, a, w, bias, shape}, c, shape);
}

}  // namespace fovea::cpu
