#include "embed/modules.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <set>

#include "base/error.h"
#include "base/files.h"
#include "base/folder_links.h"
#include "base/gguf.h"
#include "base/hash.h"
#include "base/json.h"
#include "base/settings.h"
#include "checkpoint/module_files.h"
#include "embed/losses.h"
#include "formats/gguf/modules.h"
#include "fovea/core/excerpt.h"
#include "safetensors/safetensors.h"

namespace fovea::infer {
namespace {

using Json = nlohmann::json;

const std::array<std::string, 4> kSimilarities = {"cosine", "dot", "euclidean", "manhattan"};

constexpr int64_t kWidest = int64_t{1} << 20;  // far above any real width

constexpr const char* kSettingsFile = "config_sentence_transformers.json";

Json read_object(const std::string& path) {
  Json json = read_json(path);
  if (!json.is_object())
    fail(ErrorKind::BadFile, "{}: not an object; expected keys and values in braces", path);
  return json;
}

// Reads config.json of a module, and refuses settings other than `known`.
Json read_module_settings(const std::string& path, const std::set<std::string_view>& known) {
  const Json json = read_object(path);
  refuse_unknown_settings(json, path, "modules", known);
  return json;
}

// Reads config_sentence_transformers.json of the folder; empty if it does not exist.
Json read_settings(const std::string& folder) {
  const std::string file = folder + "/" + kSettingsFile;
  if (!is_file(file)) return Json::object();
  const Json json = read_object(file);
  refuse_unknown_settings(json, file, kSettingsFile, {});
  return json;
}

int64_t find_width(const Json& config, const std::string& file, int64_t width) {
  for (const char* key : {"embedding_dimension", "word_embedding_dimension"})
    if (const auto found = find_int(config, key, file); found && *found != width)
      fail(ErrorKind::BadFile, "{}: {} is {}; expected {}, the Transformer's width", file, key,
           *found, width);
  return width;
}

PoolingModule read_pooling(const std::string& folder, int64_t& width) {
  const std::string file = folder + "/config.json";
  std::set<std::string_view> known = {"embedding_dimension", "word_embedding_dimension",
                                      "pooling_mode", "include_prompt"};
  for (const auto& [key, mode] : model::kPoolingModeKeys) known.insert(key);
  const Json config = read_module_settings(file, known);
  PoolingModule pooling;
  for (const std::string& name : model::pooling_modes(config, file))
    pooling.modes.push_back(token_pooling_named(name, file));
  pooling.include_prompt = find_bool(config, "include_prompt", file).value_or(true);
  width = find_width(config, file, width) * static_cast<int64_t>(pooling.modes.size());
  return pooling;
}

// Reads a tensor of a module's model.safetensors as fp32.
Tensor read_tensor(const SafeTensors& tensors, const std::string& folder, const std::string& name,
                   const Shape& shape) {
  const StoredTensor* stored = tensors.find(name);
  if (stored == nullptr)
    fail(ErrorKind::BadFile, "{}/model.safetensors: {} is missing; expected {}", folder, name,
         describe(shape));
  if (stored->shape != shape)
    fail(ErrorKind::BadFile, "{}/model.safetensors: {} is {}; expected {}", folder, name,
         describe(stored->shape), describe(shape));
  const Tensor value = tensors.tensor(name);
  if (value.dtype() == DType::f16) return widen_halves(value);
  return convert(value, DType::f32);
}

model::Parameter parameter(const Tensor& value, model::Role role) {
  return {value.shape(), role, value};
}

// The names of a module's input and output in older files are those of its kind of model.
void check_names(const Json& config, const std::string& file, const char* expected) {
  for (const char* key : {"module_input_name", "module_output_name"})
    if (const auto name = find_string(config, key, file); name && *name != expected)
      fail(ErrorKind::Unsupported, "{}: {} is {}; expected {}", file, key, excerpt(*name),
           expected);
}

PoolingModule read_attention_pooling(const std::string& folder, int64_t width) {
  const std::string file = folder + "/config.json";
  const Json config = read_module_settings(
      file, {"embedding_dimension", "word_embedding_dimension", "include_prompt"});
  find_width(config, file, width);
  return {{TokenPooling::attention},
          find_bool(config, "include_prompt", file).value_or(true),
          read_tensor(SafeTensors::open_model(folder), folder, "vector", {width})};
}

model::Norm read_layer_norm(const std::string& folder, int64_t width) {
  const std::string file = folder + "/config.json";
  const Json config = read_module_settings(file, {"dimension"});
  const int64_t dimension = get_int(config, "dimension", file, 1, kWidest);
  if (dimension != width)
    fail(ErrorKind::BadFile, "{}: dimension is {}; expected {}, the width so far", file, dimension,
         width);
  const auto tensors = SafeTensors::open_model(folder);
  model::Norm norm({.kind = model::NormKind::layer, .epsilon = 1e-5f},
                   width);  // torch's default epsilon
  norm.weight.value = read_tensor(tensors, folder, "norm.weight", {width});
  norm.bias.value = read_tensor(tensors, folder, "norm.bias", {width});
  return norm;
}

LayerMean read_layer_mean(const std::string& folder) {
  const std::string file = folder + "/config.json";
  const Json config = read_module_settings(
      file,
      {"layer_start", "num_hidden_layers", "embedding_dimension", "word_embedding_dimension"});
  constexpr int64_t kMostLayers = 10'000;
  LayerMean mean;
  mean.first = get_int(config, "layer_start", file, 0, kMostLayers);
  const int64_t layers = get_int(config, "num_hidden_layers", file, mean.first, kMostLayers);
  const auto tensors = SafeTensors::open_model(folder);
  mean.weights =
      to_floats(read_tensor(tensors, folder, "layer_weights", {layers + 1 - mean.first}));
  double sum = 0;
  for (const float weight : mean.weights) sum += weight;
  if (!std::isfinite(sum) || sum == 0)
    fail(ErrorKind::BadFile,
         "{}/model.safetensors: layer_weights sum to {}; expected a finite sum other than 0",
         folder, sum);
  for (float& weight : mean.weights) weight = static_cast<float>(weight / sum);
  return mean;
}

// Modules before the pooling apply to tokens, modules after it to the vector.
void read_module(const model::ListedModule& listed, bool& pooled, SentenceModules& modules) {
  if (listed.kind == "Dropout") return;
  if (listed.kind == "Pooling" && !pooled) {
    modules.pooling = read_pooling(listed.folder, modules.width);
    pooled = true;
  } else if (listed.kind == "AttentionPooling" && !pooled) {
    modules.pooling = read_attention_pooling(listed.folder, modules.width);
    pooled = true;
  } else if (listed.kind == "WeightedLayerPooling" && !pooled && !modules.layers) {
    modules.layers = read_layer_mean(listed.folder);
  } else if (listed.kind == "Dense" && pooled) {
    modules.after.emplace_back(read_dense(listed.folder, "sentence_embedding", modules.width));
  } else if (listed.kind == "LayerNorm" && pooled) {
    modules.after.emplace_back(read_layer_norm(listed.folder, modules.width));
  } else if (listed.kind == "Normalize" && pooled) {
    if (const std::string file = listed.folder + "/config.json"; is_file(file))
      check_names(read_module_settings(file, {"module_input_name", "module_output_name"}), file,
                  "sentence_embedding");
    modules.after.emplace_back(NormalizeModule{});
  } else {
    fail(ErrorKind::Unsupported,
         "{}: module {} is not supported at this position; expected WeightedLayerPooling, Pooling "
         "or AttentionPooling, and then Dense, LayerNorm, Normalize or Dropout",
         listed.folder, listed.kind);
  }
}

void truncate_vectors(const std::string& folder, SentenceModules& modules) {
  const auto kept =
      find_int(read_settings(folder), "truncate_dim", folder + "/" + kSettingsFile, 1);
  if (!kept || *kept >= modules.width) return;
  modules.after.emplace_back(TruncateModule{*kept, modules.width});
  modules.width = *kept;
}

Similarity similarity_in(const std::string& folder) {
  const auto name = find_setting(folder, "similarity_fn_name");
  if (!name) return Similarity::cosine;
  const auto similarity = similarity_named(*name);
  if (!similarity)
    fail(ErrorKind::BadFile, "{}/{}: similarity_fn_name is {}; expected one of {}", folder,
         kSettingsFile, *name, fmt::join(kSimilarities, ", "));
  return *similarity;
}

// Sets the pooling of a .gguf file, its matrices, and vectors of unit length, as llama.cpp has
// them; without a pooling, nothing.
void read_gguf_modules(const std::string& path, SentenceModules& modules) {
  const model::TextVectorModules found = model::modules_of_gguf(path);
  switch (found.pooling) {
    case model::GgufPooling::none: return;
    case model::GgufPooling::mean: modules.pooling.modes = {TokenPooling::mean}; break;
    case model::GgufPooling::first: modules.pooling.modes = {TokenPooling::cls}; break;
    case model::GgufPooling::last: modules.pooling.modes = {TokenPooling::last}; break;
    case model::GgufPooling::rank:
      fail(ErrorKind::Unsupported,
           "{}: pooling_type is 4: it scores or labels texts; expected 1 (mean), 2 (first token) "
           "or 3 (last token) for vectors of texts",
           path);
  }
  for (const Tensor& weight : found.dense) {
    DenseModule dense;
    dense.linear.weight = parameter(weight, model::Role::matrix);
    modules.width = weight.dim(0);
    modules.after.emplace_back(std::move(dense));
  }
  modules.after.emplace_back(NormalizeModule{});
}

}  // namespace

bool names_pooling(const std::string& path) {
  return is_gguf(path) && model::modules_of_gguf(path).pooling != model::GgufPooling::none;
}

std::optional<std::string> find_setting(const std::string& folder, const char* key) {
  return find_string(read_settings(folder), key, folder + "/" + kSettingsFile);
}

NamedPrompts read_prompts(const std::string& folder) {
  NamedPrompts read;
  const std::string file = folder + "/" + kSettingsFile;
  const Json config = read_settings(folder);
  if (const auto prompts = config.find("prompts"); prompts != config.end() && !prompts->is_null()) {
    if (!prompts->is_object())
      fail(ErrorKind::BadFile, "{}: prompts is {}; expected an object", file, brief(*prompts));
    for (const auto& [name, prompt] : prompts->items())
      read.prompts[name] = prompt.is_null() ? "" : get_string(*prompts, name, file);
  }
  read.default_prompt = find_string(config, "default_prompt_name", file).value_or("");
  if (!read.default_prompt.empty() && !read.prompts.contains(read.default_prompt))
    fail(ErrorKind::BadFile, "{}: default_prompt_name is {}; expected one of prompts", file,
         read.default_prompt);
  return read;
}

DenseModule read_dense(const std::string& folder, const char* input, int64_t& width) {
  const std::string file = folder + "/config.json";
  const Json config =
      read_module_settings(file, {"in_features", "out_features", "bias", "activation_function",
                                  "use_residual", "module_input_name", "module_output_name"});
  check_names(config, file, input);
  const int64_t in = get_int(config, "in_features", file, 1, kWidest);
  const int64_t out = get_int(config, "out_features", file, 1, kWidest);
  if (in != width)
    fail(ErrorKind::BadFile, "{}: in_features is {}; expected {}, the width so far", file, in,
         width);
  const auto tensors = SafeTensors::open_model(folder);
  DenseModule dense;
  dense.linear.weight =
      parameter(read_tensor(tensors, folder, "linear.weight", {out, in}), model::Role::matrix);
  if (find_bool(config, "bias", file).value_or(true))
    dense.linear.bias =
        parameter(read_tensor(tensors, folder, "linear.bias", {out}), model::Role::bias);
  dense.activation = activation_named(
      find_string(config, "activation_function", file).value_or("torch.nn.Tanh"), file);
  dense.residual = find_bool(config, "use_residual", file).value_or(false);
  if (dense.residual && in != out)
    dense.projection.weight =
        parameter(read_tensor(tensors, folder, "residual.weight", {out, in}), model::Role::matrix);
  width = out;
  return dense;
}

uint64_t hash_of(std::span<const model::ListedModule> modules) {
  Hasher hasher;
  for (const model::ListedModule& module : modules) {
    hasher.add(module.kind);
    if (!is_folder(module.folder)) continue;  // Normalize has no folder
    for (const std::string& name : list_files(module.folder))
      hasher.add(MappedFile(module.folder + "/" + name).bytes());
  }
  return hasher.hash();
}

std::optional<Activation> activation_named(const std::string& type, const std::string& file) {
  const std::string name = type.substr(type.rfind('.') + 1);
  if (name == "Identity") return std::nullopt;
  if (name == "Tanh") return Activation::tanh;
  if (name == "ReLU") return Activation::relu;
  if (name == "GELU") return Activation::gelu;
  if (name == "SiLU") return Activation::silu;
  if (name == "Sigmoid") return Activation::sigmoid;
  fail(ErrorKind::Unsupported,
       "{}: activation {} is not known; expected Identity, Tanh, ReLU, GELU, SiLU or "
       "Sigmoid",
       file, type);
}

TextSettings read_text_settings(const std::string& folder, const text::Tokenizer& tokenizer) {
  TextSettings settings = text_settings_of(tokenizer, folder + "/tokenizer_config.json");
  if (!is_folder(folder)) return settings;  // a .gguf file
  for (const std::string& name : list_files(folder)) {
    if (!model::is_settings_file(name)) continue;
    const std::string file = folder + "/" + name;
    const Json config = read_object(file);
    refuse_unknown_settings(config, file, "sentence_bert_config.json", {});
    if (const auto given = config.find("processing_kwargs");  // for messages: see MessageFormat
        given != config.end() && !given->is_null())
      refuse_unknown_settings(*given, file + ": processing_kwargs", "", {"chat_template"});
    if (const auto most = find_int(config, "max_seq_length", file, 1)) settings.max_tokens = most;
    settings.lower_case = find_bool(config, "do_lower_case", file).value_or(false);
  }
  return settings;
}

const std::string& name_of(Similarity similarity) {
  return kSimilarities[static_cast<size_t>(similarity)];
}

std::optional<Similarity> similarity_named(const std::string& name) {
  const auto found = std::find(kSimilarities.begin(), kSimilarities.end(), name);
  if (found == kSimilarities.end()) return std::nullopt;
  return static_cast<Similarity>(found - kSimilarities.begin());
}

SentenceModules read_modules(const std::string& folder, int64_t width) {
  refuse_links_out(folder);
  SentenceModules modules;
  modules.width = width;
  modules.pooling.modes = {TokenPooling::mean};
  static_cast<NamedPrompts&>(modules) = read_prompts(folder);
  modules.similarity = similarity_in(folder);
  if (is_gguf(folder)) read_gguf_modules(folder, modules);
  if (!model::has_modules(folder)) {
    truncate_vectors(folder, modules);
    return modules;
  }
  const std::vector<model::ListedModule> listed = model::list_modules(folder);
  modules.static_vectors = listed.front().kind == model::kStaticEmbedding;
  bool pooled = modules.static_vectors;  // the module computes the mean itself
  for (size_t i = 1; i < listed.size(); ++i) read_module(listed[i], pooled, modules);
  modules.hash = hash_of(std::span(listed).subspan(1));
  if (!pooled)
    fail(ErrorKind::Unsupported,
         "{}/modules.json: no Pooling module; expected a module that computes one vector for each "
         "text",
         folder);
  truncate_vectors(folder, modules);
  return modules;
}

void keep_all_elements(SentenceModules& modules) {
  if (modules.after.empty()) return;
  const auto* const truncated = std::get_if<TruncateModule>(&modules.after.back());
  if (truncated == nullptr) return;
  modules.width = truncated->before;
  modules.after.pop_back();
}

std::string describe_pooling(const SentenceModules& modules) {
  constexpr std::array kNames = {"first token",
                                 "maximum of the tokens",
                                 "mean of the tokens",
                                 "sum of the tokens / square root of their number",
                                 "mean of the tokens with weights 1, 2, ...",
                                 "last token",
                                 "learned attention over the tokens"};
  std::vector<std::string> names;
  for (const TokenPooling mode : modules.pooling.modes)
    names.emplace_back(kNames[static_cast<size_t>(mode)]);
  std::string text = fmt::format("{}", fmt::join(names, " and "));
  if (!modules.layers) return text;
  const auto& [first, weights, scores] = *modules.layers;
  return text + fmt::format("; layers {} to {} with weights {:.3f}", first,
                            first + std::ssize(weights) - 1, fmt::join(weights, " "));
}

Tensor apply_module(const VectorModule& module, const Tensor& x) {
  if (std::holds_alternative<NormalizeModule>(module)) return unit_length(x);
  if (const auto* truncated = std::get_if<TruncateModule>(&module))
    return first_columns(x, truncated->width);
  if (const model::Norm* norm = std::get_if<model::Norm>(&module)) return (*norm)(x, x.dtype());
  const DenseModule& dense = std::get<DenseModule>(module);
  Tensor y = dense.linear(x);
  if (dense.activation) y = activation(y, *dense.activation);
  if (!dense.residual) return y;
  return add(y, dense.projection.weight.present() ? dense.projection(x) : x);
}

void move_modules(const Device& device, std::vector<VectorModule>& modules) {
  const auto move = [&](const std::string&, model::Parameter& p) { p.value = p.value.to(device); };
  for (VectorModule& module : modules) {
    if (auto* dense = std::get_if<DenseModule>(&module)) {
      dense->linear.each(move, "linear");
      dense->projection.each(move, "projection");
    } else if (auto* norm = std::get_if<model::Norm>(&module)) {
      norm->each(move, "norm");
    }
  }
}

}  // namespace fovea::infer
