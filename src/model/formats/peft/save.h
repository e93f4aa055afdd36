#pragma once

#include <map>
#include <string>

#include "loading/loading.h"

namespace fovea::model {

// The contents of adapter_config.json that do not follow from the model.
struct AdapterFacts {
  std::string base;  // base_model_name_or_path
  int64_t rank = 0;  // of most modules; others are in rank_pattern
  double alpha = 0;  // of most modules; others are in alpha_pattern
  bool rslora = false;
  float dropout = 0;
  // What takes the place of "model" in the names of modules: "model.language_model" for the decoder
  // of a model that reads images; empty = nothing.
  std::string decoder = {};
};

// Returns lora_alpha for a scale, without the scale's rounding error in fp32.
double alpha_of(float scale, int64_t rank, bool rslora);

// The adapter of a module as files store it.
struct StoredAdapter {
  std::string module;
  Tensor down, up, magnitude;  // magnitude empty = without DoRA
  float scale = 1;
  bool transposed = false;  // see AdapterModule
  int64_t rank = 0;
  std::string parameter = {};  // of PEFT's target_parameters; empty = the adapter is of a module
};
// Returns the adapters of a model by the modules of a family. The layers of a fused tensor have one
// A if theirs are equal; otherwise A consists of theirs one after another, B is block-diagonal, and
// rank and alpha are multiplied by the number of layers. Those of stacked experts in a GGUF file
// are stacked; those of transformers are in the form of fused_experts.h.
std::vector<StoredAdapter> stored_adapters(Transformer& model, const Family& family);

// Returns the tensors of adapter_model.safetensors: the adapters, and the other trainable
// parameters (modules_to_save).
std::map<std::string, Tensor> adapter_tensors(Transformer& model, const Family& family);

// Returns the contents of adapter_config.json and adapter_model.safetensors, as PEFT writes them,
// by these names; for a head with labels also the model's config.json, which names them.
std::map<std::string, std::string> adapter_files(Transformer& model, const Origin& origin,
                                                 const AdapterFacts& facts);

// Writes these files into an existing folder.
void save_adapter(const std::string& folder, Transformer& model, const Origin& origin,
                  const AdapterFacts& facts);

}  // namespace fovea::model
