#pragma once

// The implementations of cpu::gemm. m and n are positive; GemmShape documents the rest.

#include "kernels/cpu/product.h"

namespace fovea::cpu {

// Every element is one chain of fused multiply-adds over ascending k that starts at 0 (one chain
// per unit, whose sums a tree adds). Then bias is added, then the old c if c.add; the result is
// rounded once to c's dtype. Blocking, shape, thread count and vector width do not change any bit.
// If both operands are bf16, denormal numbers count as zero, as in the CPUs' own bf16 products.
//
// floats: bf16 is widened during packing. pairs (bf16 operands only): AVX512-BF16. model_pairs: its
// software model. All three give the same bits.
enum class VectorProducts { floats, pairs, model_pairs };
void gemm_vectors(const Product& product, VectorProducts how);

// bf16 operands on AMX's tiles or their software model; gemm/tiles.cc describes the order of sums.
void gemm_tiles(const Product& product, bool native);

}  // namespace fovea::cpu
