#pragma once

// Which instruction set the kernels use.

#include <cstdint>
#include <string>
#include <vector>

#include "base/dtype.h"

namespace fovea {

// The instruction sets that this process may use, best first: of "amx", "avx512-bf16", "avx512"
// and "avx2" those that the CPU has and FOVEA_ISA allows.
std::vector<std::string> available_isas();
// Those and "amx-model" and "avx512-bf16-model": the kernels of these two around software models of
// their instructions, for CPUs that lack them. FOVEA_ISA and use_isa() take the models' names too.
std::vector<std::string> testable_isas();
std::string active_isa();  // one of them, or "reference"
// "auto", one of testable_isas() or "reference"; InvalidArgument otherwise.
void use_isa(const std::string& name);

// How a product of two bf16 operands is computed. widened: as fp32. pairs: by AVX512-BF16. tiles:
// by AMX. The models are bit-exact (bf16_pairs-inl.h, tiles-inl.h), but for the payload of a NaN.
enum class Bf16Products : uint8_t { widened, pairs, model_pairs, tiles, model_tiles };
Bf16Products bf16_products();
bool native_bf16();  // whether bf16 products run at more than the fp32 rate

// The class of CPUs that compute the same bits with products in `compute`: "amx" for bf16 on AMX,
// "common" for everything else.
std::string numeric_class(DType compute);

// Instruction sets that the CPU has and that are not used, because a product of theirs differs from
// its model: a line each, or none.
std::vector<std::string> rejected_isas();

}  // namespace fovea
