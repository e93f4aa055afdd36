#pragma once

// The two ways in which cpu::gemm multiplies, for it and for the tests. Shapes are not empty; see
// GemmShape for the rest.

#include "kernels/kernels.h"

namespace fovea::cpu {

// Our own kernel: fp32 products, bf16 operands widened while they are packed. Every element of the
// product is one chain of fused multiply-adds over ascending k that starts at 0; then + bias; then
// + what c held, if c.add; then one rounding to c's dtype. No blocking, shape, thread count or
// vector width enters into that, so none can change a bit.
void gemm_f32(Out c, In a, In b, In bias, const GemmShape& shape);

// oneDNN's bf16 matmul, for CPUs that multiply bf16 natively. a and b are bf16, bias too or absent
// or f32.
void gemm_onednn(Out c, In a, In b, In bias, const GemmShape& shape);

}  // namespace fovea::cpu
