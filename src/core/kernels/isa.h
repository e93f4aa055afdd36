#pragma once

// The instruction sets of the kernels: which are available, and which one is in use.

#include <cstdint>
#include <string>
#include <vector>

#include "base/dtype.h"
#include "fovea/core/machine.h"

namespace fovea {

// Returns the instruction sets that this process may use, best first: those of "amx",
// "avx512-bf16", "avx512", "avx-vnni" and "avx2" that the CPU and the operating system support and
// FOVEA_ISA allows, except those that rejected_isas() lists.
std::vector<std::string> available_isas();
// Returns available_isas() plus "avx-vnni-model", "amx-model" and "avx512-bf16-model": the kernels
// for those instruction sets, on software models of the instructions, for CPUs that lack them.
// FOVEA_ISA and use_isa() also accept the names of the models.
std::vector<std::string> testable_isas();
// Selects the kernels: "auto" (the best of available_isas()), one of testable_isas() or
// "reference". Throws InvalidArgument if `name` is none of these.
void use_isa(const std::string& name);

// How a product of two bf16 operands is computed. widened: as fp32. pairs: AVX512-BF16. tiles: AMX.
// The models are bit-exact (bf16_pairs-inl.h, tiles-inl.h), except for the payload of a NaN.
enum class Bf16Products : uint8_t { widened, pairs, model_pairs, tiles, model_tiles };
Bf16Products bf16_products();
bool native_bf16();  // whether bf16 products use bf16 instructions or their model, or a GPU

// How a product of two vectors of bytes is computed; the results are the same integers. pairs: with
// AVX2. vnni: with AVX-512's or AVX's VNNI. model_vnni: the kernels for AVX-VNNI, with AVX2.
enum class ByteProducts : uint8_t { pairs, vnni, model_vnni };
ByteProducts byte_products();

// Returns the class of machines that compute the same bits with products in `compute`: for bf16
// "amx" on AMX or its model, and "cuda-mma" or "cuda-model-mma" on these devices, else "common".
std::string numeric_class(DType compute);

// Returns one line for each instruction set that the CPU supports but fovea does not use, because
// its bf16 products differ from those of the model.
std::vector<std::string> rejected_isas();

}  // namespace fovea
