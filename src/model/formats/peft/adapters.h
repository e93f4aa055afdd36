#pragma once

// Low-rank adapters in the format of PEFT (a folder with adapter_config.json and
// adapter_model.safetensors) or of llama.cpp (a .gguf file). The names of the adapted modules are
// those of the base model's tensors in this format. Where a tensor of the file holds several layers
// of fovea (fused query, key and value), each layer has the tensor's A and its rows of B. The
// adapters of stacked experts (llama.cpp) are stacked too: A [E, rank, in], B [E, out, rank].

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "checkpoint/family.h"
#include "formats/peft/config.h"
#include "safetensors/tensor_source.h"

namespace fovea::model {

// A module of the checkpoint, and the linear layers that its weight consists of.
struct AdapterModule {
  std::string name;   // "model.layers.0.self_attn.q_proj"
  FileTensor tensor;  // its weight; `parts` are the names of the layers, without ".weight"
  std::vector<Linear*> layers;
  bool transposed = false;  // the file stores the weight as [in, out]: fan_in_fan_out of PEFT
};

// How modules are named: as their weights in the checkpoint's files, or as in memory in
// transformers 5, which PEFT adapts. They differ in families with names_in_memory.
enum class ModuleNames { files, memory };
// Returns the tensors by these names. Stacked experts are not modules in memory.
std::vector<FileTensor> module_tensors(const Family& family, Transformer& model, ModuleNames names);

// Return the modules of a model's linear layers: all of them, and those that can have adapters. The
// pointers are valid until the model is moved, assigned or destroyed.
std::vector<AdapterModule> linear_modules(const Family& family, Transformer& model,
                                          ModuleNames names = ModuleNames::files);
std::vector<AdapterModule> adapter_modules(const Family& family, Transformer& model,
                                           ModuleNames names = ModuleNames::files);

inline constexpr const char* kTokenTable = "embedding.token";

// The adapter of one layer; see LowRankAdapter.
struct AdapterValues {
  Tensor down, up, magnitude;  // magnitude empty = without DoRA
  float scale = 1;
};

struct Adapter {
  std::string folder;
  float dropout = 0;
  std::map<std::string, AdapterValues> layers;  // by the layer's name in the model
  // Changes of matrices outside of the stacks (the head, the embedding) and others that do not hold
  // an adapter, by the parameter's name. They are added to the weights when the model is opened.
  std::map<std::string, AdapterValues> changes;
  std::map<std::string, Tensor> replaced;  // modules_to_save, by the parameter's name
  // The head of a base whose embedding is also the head gets a matrix of its own.
  bool unties = false;

  bool changes_weights() const { return !changes.empty() || !replaced.empty(); }
};

// Reads an adapter of a model. Throws BadFile if a tensor does not belong to the model or is not
// described by the config, and Unsupported for methods that fovea does not have.
Adapter read_peft_adapter(const std::string& folder, const Family& family, Transformer& model);

// The file of an adapter, and the tensors of one module in it.
struct AdapterFile {
  const std::string& path;
  const TensorSource& tensors;
};
struct StoredModule {
  const StoredTensor *down = nullptr, *up = nullptr, *magnitude = nullptr;
  int64_t rank = 0;
  float scale = 1;
};
// Reads a tensor in f32. Throws BadFile if it has another shape or elements that are not finite.
Tensor read_adapter_tensor(const AdapterFile& file, const StoredTensor& stored,
                           const Shape& expected);
// Reads the tensors of a module and divides them among its layers: each has A, and its rows of B
// and of m. Throws BadFile if the tensors do not fit the module.
void read_module(const AdapterFile& file, const StoredModule& stored, const AdapterModule& module,
                 Adapter& adapter);

// Adds the adapter to a model as it is stored, for training. Only its parameters, and those that it
// changes, are trainable afterwards.
void add_stored_adapter(Transformer& model, const Adapter& adapter);

// Adds the weighted sum of several adapters to a model, for inference: each layer gets one adapter
// (LowRankAdapter::fixed), whose rank is the sum of the ranks. Throws InvalidArgument if an adapter
// that replaces parameters has a weight other than 1, if two replace the same parameter, or if only
// some of those that change the embedding give the head a matrix of its own.
void add_adapter_sum(Transformer& model, const std::vector<std::pair<Adapter, double>>& adapters);

}  // namespace fovea::model
