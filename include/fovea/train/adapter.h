#pragma once

#include <cstdint>
#include <string>

#include "fovea/core/options.h"

namespace fovea::train {

// Precision of the frozen weights while adapters are trained (QLoRA; Dettmers et al. 2023). stored:
// as in the model's files: fp32, bf16, int8, int4 or the block types of GGUF files; fp16 becomes
// fp32. The others convert to the named format; weights that are quantised in a directory
// (quantization_config) always stay so. Products are computed without rounding activations
// to integers.
enum class BasePrecision { stored, fp32, bf16, int8, int4 };

// Training of low-rank adapters instead of all weights (LoRA; Hu et al. 2021). The output directory
// then has the format of PEFT: adapter_config.json and adapter_model.safetensors.
struct AdapterOptions {
  int64_t rank = 0;  // 0 = off: all weights are trained
  double alpha = 0;  // an adapter's change is multiplied by alpha / rank; 0 = 2 * rank
  // "all-linear": all linear layers of the stacks; or names of modules of the checkpoint, separated
  // by commas: "q_proj,v_proj" selects each module of this name.
  std::string targets = "all-linear";
  double dropout = 0;   // probability, of the adapters' inputs
  bool rslora = false;  // alpha / sqrt(rank) instead of alpha / rank (Kalajdzievski 2023)
  bool dora = false;    // also train the length of each row of a weight (Liu et al. 2024)
  // LoRA+ (Hayou et al. 2024): learning rate of the matrices B, as a multiple of that of A.
  double plus = 1;
  BasePrecision base = BasePrecision::stored;
};
// The fields are named "lora" (the rank), "lora_alpha", ...   (fovea/core/options.h)
void visit(AdapterOptions& options, OptionVisitor& visitor);

}  // namespace fovea::train
