#include "formats/peft/experts.h"

#include <algorithm>
#include <cstring>

#include "base/error.h"
#include "transformer/adapters.h"

namespace fovea::model {
namespace {

std::string module_part(const std::string& name) { return name.substr(0, name.rfind('.')); }

using Layers = std::map<std::string, Linear*>;  // by the name of their weight

Layers layers_of(Transformer& model) {
  Layers layers;
  for (const auto& [name, layer] : linears_of(model)) layers[name + ".weight"] = layer;
  return layers;
}

// Returns the tensors by the names of their adapters.
std::map<std::string, FileTensor> by_module(std::vector<FileTensor> tensors) {
  std::map<std::string, std::vector<FileTensor>> modules;
  for (FileTensor& tensor : tensors) modules[module_part(tensor.name)].push_back(std::move(tensor));
  std::map<std::string, FileTensor> found;
  for (auto& [module, all] : modules) {
    std::string name = module;
    for (size_t i = all.size(); i-- > 0; name += ".base_layer")
      found.emplace(name, std::move(all[i]));
  }
  return found;
}

// Returns B_e [out, rank] of B [out, rank E].
Tensor columns_of_expert(const Tensor& up, int64_t expert, int64_t experts) {
  const int64_t rank = up.dim(1) / experts;
  const Tensor y = empty({up.dim(0), rank});
  for (int64_t row = 0; row < up.dim(0); ++row)
    for (int64_t r = 0; r < rank; ++r)
      y.data_as<float>()[row * rank + r] =
          up.data_as<float>()[row * up.dim(1) + r * experts + expert];
  return y;
}

// PEFT has no DoRA for parameters.
bool has_adapter(const Linear* layer) {
  return layer->adapter.present() && !layer->adapter.magnitude.present();
}

// Returns the tensors of experts that transformers has as parameters and that have an adapter.
std::vector<FileTensor> adapted_tensors(const Family& family, Transformer& model) {
  if (family.names_in_memory.empty()) return {};
  const Layers layers = layers_of(model);
  const auto adapted = [&](const std::string& part) { return has_adapter(layers.at(part)); };
  std::vector<FileTensor> found;
  for (FileTensor& tensor : file_tensors(family, model, true))
    if (tensor.stored == Stored::stacked &&
        std::any_of(tensor.parts.begin(), tensor.parts.end(), adapted))
      found.push_back(std::move(tensor));
  return found;
}

// Returns whether the layers of each expert that have an adapter have the same A.
bool shares_down(const std::vector<const Linear*>& layers, size_t each) {
  const Linear* first = nullptr;
  for (size_t i = 0; i < layers.size(); ++i) {
    if (i % each == 0) first = nullptr;
    if (!layers[i]->adapter.present()) continue;
    if (first == nullptr) first = layers[i];
    const Tensor &a = first->adapter.down.value, &b = layers[i]->adapter.down.value;
    if (a.shape() != b.shape() || std::memcmp(a.data(), b.data(), a.bytes()) != 0) return false;
  }
  return true;
}

// Returns the adapter of a tensor whose experts have `each` layers. A layer without an adapter gets
// rows of 0 in B.
StoredAdapter joined(const FileTensor& tensor, const std::vector<const Linear*>& layers,
                     const LowRankAdapter& first) {
  const int64_t experts = tensor.group, layer_rank = first.down.value.dim(0),
                in = first.down.value.dim(1);
  const size_t each = layers.size() / static_cast<size_t>(experts);
  const bool shared = shares_down(layers, each);
  int64_t outputs = 0, adapted = 0;
  for (size_t p = 0; p < each; ++p) {
    outputs += layers[p]->weight.shape[0];
    adapted += layers[p]->adapter.present();
  }
  const int64_t rank = layer_rank * (shared ? 1 : adapted);
  Tensor down = zeros({experts * rank, in}), up = zeros({outputs, rank * experts});
  for (int64_t e = 0; e < experts; ++e) {
    int64_t row = 0, column = 0;
    for (size_t p = 0; p < each; ++p) {
      const Linear& layer = *layers[static_cast<size_t>(e) * each + p];
      const int64_t rows = layer.weight.shape[0];
      if (layer.adapter.present()) {
        check(layer.adapter.scale == first.scale && layer.adapter.down.value.dim(0) == layer_rank,
              "{}: the adapters of its layers differ; expected the same rank and scale",
              tensor.name);
        const float* const b = layer.adapter.up.value.data_as<float>();
        std::copy_n(layer.adapter.down.value.data_as<float>(), layer_rank * in,
                    down.data_as<float>() + (e * rank + column) * in);
        for (int64_t i = 0; i < rows; ++i)
          for (int64_t r = 0; r < layer_rank; ++r)
            up.data_as<float>()[(row + i) * rank * experts + (column + r) * experts + e] =
                b[i * layer_rank + r];
        if (!shared) column += layer_rank;
      }
      row += rows;
    }
  }
  return {.module = {},
          .down = down,
          .up = up,
          .magnitude = {},
          .scale = first.scale,
          .rank = rank,
          .parameter = tensor.name};
}

}  // namespace

std::map<std::string, FileTensor> targeted_parameters(const Family& family, Transformer& model,
                                                      const PeftConfig& config) {
  std::vector<FileTensor> targets;
  for (FileTensor& tensor : file_tensors(family, model, true))
    if (tensor.stored == Stored::stacked && config.targets_parameter(tensor.name))
      targets.push_back(std::move(tensor));
  return by_module(std::move(targets));
}

std::set<const Linear*> adapted_in_parameters(const Family& family, Transformer& model) {
  std::set<const Linear*> found;
  const Layers layers = layers_of(model);
  for (const FileTensor& tensor : adapted_tensors(family, model))
    for (const std::string& part : tensor.parts) found.insert(layers.at(part));
  return found;
}

std::vector<StoredAdapter> stored_parameters(const Family& family, Transformer& model) {
  const Layers layers = layers_of(model);
  std::vector<StoredAdapter> found;
  for (const auto& [module, tensor] : by_module(adapted_tensors(family, model))) {
    std::vector<const Linear*> all;
    for (const std::string& part : tensor.parts) all.push_back(layers.at(part));
    const auto first = std::find_if(all.begin(), all.end(), has_adapter);
    found.push_back(joined(tensor, all, (*first)->adapter));
    found.back().module = module;
  }
  return found;
}

void read_parameter(const AdapterFile& file, const StoredModule& stored, const FileTensor& tensor,
                    Transformer& model, Adapter& adapter) {
  const Layers layers = layers_of(model);
  const int64_t experts = tensor.group, rank = stored.rank;
  const auto each = tensor.parts.size() / static_cast<size_t>(experts);  // parts of an expert
  int64_t outputs = 0;
  for (size_t p = 0; p < each; ++p) outputs += layers.at(tensor.parts[p])->weight.shape[0];
  const int64_t in = layers.at(tensor.parts[0])->weight.shape[1];
  const Tensor down = read_adapter_tensor(file, *stored.down, {experts * rank, in}),
               up = read_adapter_tensor(file, *stored.up, {outputs, rank * experts});
  for (int64_t e = 0; e < experts; ++e) {
    const Tensor of_expert = columns_of_expert(up, e, experts);
    int64_t begin = 0;
    for (size_t p = 0; p < each; ++p) {
      const std::string& part = tensor.parts[static_cast<size_t>(e) * each + p];
      const int64_t end = begin + layers.at(part)->weight.shape[0];
      adapter.layers[module_part(part)] = {copy(down.rows(e * rank, (e + 1) * rank)),
                                           copy(of_expert.rows(begin, end)),
                                           {},
                                           stored.scale};
      begin = end;
    }
  }
}

}  // namespace fovea::model
