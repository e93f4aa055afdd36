#include "families/fused_experts.h"

#include "model/adapters.h"

namespace fovea {
namespace {

std::string module_part(const std::string& name) { return name.substr(0, name.rfind('.')); }

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

}  // namespace

std::map<std::string, FileTensor> fused_experts(const Family& family, Transformer& model,
                                                const PeftConfig& config) {
  std::map<std::string, std::vector<FileTensor>> modules;
  for (FileTensor& tensor : file_tensors(family, model, true))
    if (tensor.stored == Stored::stacked && config.targets_parameter(tensor.name))
      modules[module_part(tensor.name)].push_back(std::move(tensor));
  std::map<std::string, FileTensor> found;
  for (auto& [module, tensors] : modules) {
    std::string name = module;
    for (size_t i = tensors.size(); i-- > 0; name += ".base_layer")
      found.emplace(name, std::move(tensors[i]));
  }
  return found;
}

void read_fused_experts(const AdapterFile& file, const StoredModule& stored,
                        const FileTensor& tensor, Transformer& model, Adapter& adapter) {
  std::map<std::string, const Linear*> layers;
  for (const auto& [name, layer] : linears_of(model)) layers[name + ".weight"] = layer;
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

}  // namespace fovea
