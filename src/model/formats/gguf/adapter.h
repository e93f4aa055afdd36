#pragma once

#include <string>

#include "formats/peft/adapters.h"

namespace fovea::model {

// Low-rank adapters in llama.cpp's format: a GGUF file whose general.type is "adapter" and whose
// adapter.type is "lora". For a tensor NAME of the base's GGUF file, NAME.lora_a is A [rank, in]
// and NAME.lora_b is B [out, rank], with rows in NAME's order. All have one adapter.lora.alpha, and
// the scale alpha / rank; an alpha of 0 means a scale of 1.

// Reads a file for a model of this family. Throws like read_adapter().
Adapter read_gguf_adapter(const std::string& path, const Family& family, Transformer& model);

// Writes the adapters of a model, which is of the given family, in a block type, and returns
// warnings about numbers that are not finite. Throws Unsupported for what the format cannot
// express: DoRA, other trained parameters, and models of other architectures.
std::vector<std::string> save_gguf_adapter(const std::string& path, Transformer& model,
                                           const Family* family, const std::string& block);

}  // namespace fovea::model
