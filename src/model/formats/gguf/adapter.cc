#include "formats/gguf/adapter.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "base/error.h"
#include "base/files.h"
#include "checkpoint/gguf_tensors.h"
#include "formats/gguf/architectures.h"
#include "formats/gguf/model.h"
#include "formats/peft/save.h"
#include "fovea/core/excerpt.h"
#include "transformer/adapters.h"

namespace fovea::model {
namespace {

constexpr const char *kArchitecture = "general.architecture", *kMethod = "adapter.type",
                     *kAlpha = "adapter.lora.alpha";
constexpr std::string_view kDown = ".weight.lora_a", kUp = ".weight.lora_b";

void expect_text(const Gguf& file, const char* key, std::string_view expected,
                 const char* otherwise) {
  const std::string_view found = file.text(key).value_or("");
  if (found != expected)
    fail(ErrorKind::BadFile, "{}: {} is \"{}\"; expected \"{}\"{}", file.path(), key,
         excerpt(std::string(found)), expected, otherwise);
}

void check_metadata(const Gguf& file, const Family& architecture) {
  expect_text(file, kGgufType, kGgufAdapter, "");
  expect_text(file, kMethod, "lora", "");
  expect_text(file, kArchitecture, architecture.model_type,
              ": the adapter belongs to another base");
  if (file.integers("adapter.alora.invocation_tokens"))
    fail(ErrorKind::Unsupported,
         "{}: has adapter.alora.invocation_tokens; expected an adapter of all tokens", file.path());
}

// Returns alpha / rank, as llama.cpp computes it.
float scale_of(float alpha, int64_t rank) {
  return alpha == 0 ? 1 : alpha / static_cast<float>(rank);
}

}  // namespace

Adapter read_gguf_adapter(const std::string& path, const Family& family, Transformer& model) {
  const auto file = std::make_shared<const Gguf>(path);
  const Family& architecture = gguf_architecture_for(model.spec, &family);
  check_metadata(*file, architecture);
  const GgufTensors tensors(file);
  std::map<std::string, StoredModule> found;
  for (const StoredTensor& stored : tensors.stored()) {
    const auto named = [&](std::string_view ending) -> StoredModule& {
      return found[stored.name.substr(0, stored.name.size() - ending.size())];
    };
    if (stored.name.ends_with(kDown))
      named(kDown).down = &stored;
    else if (stored.name.ends_with(kUp))
      named(kUp).up = &stored;
    else
      fail(ErrorKind::Unsupported, "{}: {} is not the adapter of a matrix; expected *{} and *{}",
           path, excerpt(stored.name), kDown, kUp);
  }
  std::map<std::string, AdapterModule> modules;
  for (AdapterModule& module : linear_modules(architecture, model))
    modules.emplace(module.name, std::move(module));
  const auto alpha = static_cast<float>(file->number(kAlpha).value_or(0));
  Adapter adapter;
  adapter.folder = path;
  for (auto& [name, stored] : found) {
    const auto at = modules.find(name);
    if (at == modules.end())
      fail(ErrorKind::BadFile,
           "{}: adapts {}, which the base does not have or fovea cannot adapt; expected linear "
           "layers of the base's stacks",
           path, excerpt(name));
    const bool experts = at->second.tensor.stored == Stored::stacked;
    const size_t axes = experts ? 3 : 2;
    if (stored.down == nullptr || stored.up == nullptr || stored.down->shape.size() != axes)
      fail(ErrorKind::BadFile, "{}: the tensors of {} are incomplete; expected {} *{} and *{}",
           path, name, experts ? "stacked matrices" : "matrices", kDown, kUp);
    stored.rank = stored.down->shape[axes - 2];
    stored.scale = scale_of(alpha, stored.rank);
    read_module({path, tensors}, stored, at->second, adapter);
  }
  if (adapter.layers.empty())
    fail(ErrorKind::BadFile, "{}: has no adapters; expected tensors named NAME{}", path, kDown);
  return adapter;
}

std::vector<std::string> save_gguf_adapter(const std::string& path, Transformer& model,
                                           const Family* family, const std::string& block) {
  const Family& architecture = gguf_architecture_for(model.spec, family);
  const std::vector<StoredAdapter> adapters = stored_adapters(model, architecture);
  check(!adapters.empty(), "{}: the model has no adapters; expected at least one", path);
  std::set<const Linear*> written;
  for (const AdapterModule& module : adapter_modules(architecture, model))
    written.insert(module.layers.begin(), module.layers.end());
  for (const auto& [name, layer] : linears_of(model))
    if (layer->adapter.present() && !written.contains(layer))
      fail(ErrorKind::Unsupported,
           "{}: {} has an adapter, for which llama.cpp's format has no place; expected adapters of "
           "other layers",
           path, name);
  for (const auto& [name, parameter] : parameters_of(model))
    if (parameter->trainable &&
        (!is_of_adapter(parameter->role) || parameter->role == Role::magnitude))
      fail(ErrorKind::Unsupported,
           "{}: the adapter has {} ({}), which llama.cpp's format cannot express; expected "
           "low-rank matrices only",
           path, name, parameter->role == Role::magnitude ? "DoRA" : "modules_to_save");

  const auto rank_of = [](const StoredAdapter& one) {
    return static_cast<float>(one.down.dim(-2));
  };
  const StoredAdapter& first = adapters.front();
  const float alpha = first.scale == 0 ? rank_of(first) : first.scale * rank_of(first);
  GgufMetadata metadata;
  metadata.text(kArchitecture, architecture.model_type);
  metadata.text(kGgufType, kGgufAdapter);
  metadata.text(kMethod, "lora");
  metadata.number(kAlpha, alpha);
  std::vector<GgufTensor> tensors;
  std::vector<Tensor> values;
  const auto add = [&](const std::string& name, const Tensor& matrix) {
    tensors.push_back(gguf_tensor(name, matrix.shape(), block));
    values.push_back(matrix);
  };
  for (const StoredAdapter& one : adapters) {
    // The file has one alpha for all modules; B of a module with another scale is multiplied by the
    // quotient. A quotient that differs from 1 by rounding only is ignored.
    const float factor = one.scale / scale_of(alpha, one.down.dim(-2));
    const bool differs = std::fabs(factor - 1) > 1e-6f;
    add(one.module + std::string(kDown), one.down);
    add(one.module + std::string(kUp), differs ? scale(one.up, factor) : one.up);
  }
  std::vector<std::string> warnings;
  std::string elements;
  write_gguf(path, metadata, tensors, [&](size_t index) -> std::string_view {
    return elements = gguf_elements(tensors[index], values[index], nullptr, warnings);
  });
  return warnings;
}

}  // namespace fovea::model
