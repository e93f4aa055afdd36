#include "formats/gguf/modules.h"

#include <algorithm>
#include <array>

#include "base/error.h"
#include "base/files.h"
#include "base/gguf.h"
#include "base/json.h"
#include "checkpoint/gguf_tensors.h"
#include "checkpoint/module_files.h"
#include "formats/gguf/shared.h"
#include "safetensors/safetensors.h"

namespace fovea::model {
namespace {

// The names of sentence-transformers.
constexpr std::array<std::pair<GgufPooling, const char*>, 3> kPoolingNames = {
    {{GgufPooling::mean, "mean"}, {GgufPooling::first, "cls"}, {GgufPooling::last, "lasttoken"}}};

constexpr const char* kIdentity = "torch.nn.modules.linear.Identity";

GgufPooling pooling_in(const std::string& folder) {
  const std::string file = folder + "/config.json";
  const nlohmann::json config = read_json(file);
  const std::vector<std::string> modes = pooling_modes(config, file);
  if (!find_bool(config, "include_prompt", file).value_or(true))
    fail(ErrorKind::Unsupported,
         "{}: include_prompt is false, which a GGUF file cannot hold; expected true", file);
  for (const auto& [pooling, name] : kPoolingNames)
    if (modes.size() == 1 && modes[0] == name) return pooling;
  fail(ErrorKind::Unsupported,
       "{}: the pooling is {}, which a GGUF file cannot hold; expected mean, cls or lasttoken",
       file, fmt::join(modes, " and "));
}

Tensor as_floats(const Tensor& x) {
  return x.dtype() == DType::f16 ? widen_halves(x) : convert(x, DType::f32);
}

Tensor matrix_in(const std::string& folder) {
  const std::string file = folder + "/config.json";
  const nlohmann::json config = read_json(file);
  const std::string activation =
      find_string(config, "activation_function", file).value_or("torch.nn.Tanh");
  if (find_bool(config, "bias", file).value_or(true) ||
      find_bool(config, "use_residual", file).value_or(false) || !activation.ends_with("Identity"))
    fail(ErrorKind::Unsupported,
         "{}: has a bias, an activation or a residual, which a GGUF file cannot hold; expected a "
         "matrix alone",
         file);
  const Tensor weight = as_floats(SafeTensors::open_model(folder).tensor("linear.weight"));
  if (weight.rank() != 2)
    fail(ErrorKind::BadFile, "{}/model.safetensors: linear.weight is {}; expected [out, in]",
         folder, describe(weight.shape()));
  return weight;
}

}  // namespace

TextVectorModules modules_of_directory(const std::string& folder) {
  TextVectorModules modules;
  if (!has_modules(folder)) return modules;
  const std::vector<ListedModule> listed = list_modules(folder);
  modules.unit_length = false;
  for (size_t i = 1; i < listed.size(); ++i) {
    const auto& [kind, inner] = listed[i];
    const bool pooled = modules.pooling != GgufPooling::none;
    if (kind == "Pooling" && !pooled) {
      modules.pooling = pooling_in(inner);
    } else if (kind == "Dense" && pooled && !modules.unit_length) {
      modules.dense.push_back(matrix_in(inner));
    } else if (kind == "Normalize" && pooled) {
      modules.unit_length = true;
    } else if (kind != "Dropout" && kind != "LogitScore") {
      fail(ErrorKind::Unsupported,
           "{}: a GGUF file cannot hold the module {} at this position; expected Pooling, then "
           "Dense and Normalize",
           inner, kind);
    }
  }
  return modules;
}

TextVectorModules modules_of_gguf(const std::string& path) {
  const auto file = std::make_shared<const Gguf>(path);
  const std::string architecture(file->text("general.architecture").value_or(""));
  const int64_t number = file->integer(architecture + kGgufPoolingType).value_or(0);
  if (number < 0 || number > static_cast<int64_t>(GgufPooling::rank))
    fail(ErrorKind::BadFile, "{}: {}{} is {}; expected 0 to 4", path, architecture,
         kGgufPoolingType, number);
  TextVectorModules modules;
  modules.pooling = static_cast<GgufPooling>(number);
  const GgufTensors tensors(file);
  int64_t width = file->integer(architecture + ".embedding_length").value_or(0);
  for (const char* name : kGgufDense) {
    const StoredTensor* stored = tensors.find(std::string(name) + ".weight");
    if (stored == nullptr) continue;
    if (stored->shape.size() != 2 || stored->shape[1] != width)
      fail(ErrorKind::BadFile, "{}: {} is {}; expected rows of {}, the width so far", path,
           stored->name, describe(stored->shape), width);
    modules.dense.push_back(as_floats(tensors.tensor(stored->name)));
    width = stored->shape[0];
  }
  return modules;
}

TextVectorModules modules_at(const std::string& path) {
  return is_gguf(path) ? modules_of_gguf(path) : modules_of_directory(path);
}

void check_dense(const TextVectorModules& modules, const std::string& architecture, int64_t width) {
  const auto& dense = modules.dense;
  if (dense.empty()) return;
  if (architecture != kGemmaEmbedding || dense.size() > std::size(kGgufDense) ||
      dense.front().dim(1) != width || dense.back().dim(0) != width)
    fail(ErrorKind::Unsupported,
         "model: llama.cpp has no Dense modules like these for {}; expected one or two for {}, "
         "with {} inputs and {} outputs together",
         architecture, kGemmaEmbedding, width, width);
}

void write_modules(const std::string& folder, const TextVectorModules& modules, int64_t width) {
  const auto* named = std::find_if(kPoolingNames.begin(), kPoolingNames.end(),
                                   [&](auto& each) { return each.first == modules.pooling; });
  if (named == kPoolingNames.end()) return;
  std::vector<std::string> kinds = {"Transformer", "Pooling"};
  kinds.insert(kinds.end(), modules.dense.size(), "Dense");
  kinds.emplace_back("Normalize");
  write_module_list(folder, kinds);
  write_pooling(folder, named->second, width);
  for (size_t i = 0; i < modules.dense.size(); ++i) {
    const Tensor& weight = modules.dense[i];
    const std::string inner = fmt::format("{}/{}_Dense", folder, i + 2);
    make_directories(inner);
    const nlohmann::ordered_json config = {{"in_features", weight.dim(1)},
                                           {"out_features", weight.dim(0)},
                                           {"bias", false},
                                           {"activation_function", kIdentity}};
    write_file_atomically(inner + "/config.json", pretty(config));
    write_safetensors(inner + "/model.safetensors", {{"linear.weight", weight}});
  }
}

}  // namespace fovea::model
