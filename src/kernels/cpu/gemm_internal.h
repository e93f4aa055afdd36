#pragma once

// The ways in which cpu::gemm multiplies, for it and for the tests. Shapes are not empty; see
// GemmShape for the rest.

#include "kernels/kernels.h"

namespace fovea::cpu {

// Every element is one chain of fused multiply-adds over ascending k that starts at 0; then + bias;
// then + what c held, if c.add; then one rounding to c's dtype. No blocking, shape, thread count or
// vector width enters into that, so none can change a bit. Where both operands are bf16, denormal
// numbers count as zero, as they do for the CPUs' own bf16 products.
//
// floats: bf16 is widened while it is packed. pairs, of bf16 operands: by AVX512-BF16; model_pairs:
// by its software model. All three give the same bits.
enum class VectorProducts { floats, pairs, model_pairs };
void gemm_vectors(Out c, In a, In b, In bias, const GemmShape& shape, VectorProducts how);

// bf16 operands on AMX's tiles, or on their software model; gemm_tiles.cc says in which order.
void gemm_tiles(Out c, In a, In b, In bias, const GemmShape& shape, bool native);

}  // namespace fovea::cpu
