#include "formats/gguf/model.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "base/error.h"
#include "base/json.h"
#include "checkpoint/gguf_blocks.h"
#include "checkpoint/gguf_tensors.h"
#include "checkpoint/quantized.h"
#include "formats/gguf/architectures.h"
#include "formats/gguf/shared.h"
#include "formats/gguf/tiled_heads.h"
#include "fovea/core/excerpt.h"
#include "safetensors/safetensors.h"
#include "unicode/utf8.h"

namespace fovea::model {
namespace {

constexpr size_t kLongestList = 65'536;  // one number per layer or per pair of dimensions

// Returns a metadata value as JSON: null for lists of floats or strings, which no config uses, and
// for the integer 0, which means none. A list of equal numbers, one per layer, becomes one number.
nlohmann::json json_of(const Gguf& file, const GgufValue& value) {
  if (value.type == GgufType::boolean) {
    if (!value.is_array) return *file.boolean(value.key);
    return std::vector<bool>(value.bytes.begin(), value.bytes.end());
  }
  const bool fraction = value.type == GgufType::f32 || value.type == GgufType::f64;
  if (value.is_array) {
    if (fraction || value.type == GgufType::text) return nullptr;
    const std::vector<int64_t> numbers = *file.integers(value.key);
    const auto other = std::adjacent_find(numbers.begin(), numbers.end(), std::not_equal_to<>());
    if (other == numbers.end() && !numbers.empty()) return numbers[0];
    return numbers;
  }
  if (value.type == GgufType::text) return gguf_plain_text(file, value.key);
  if (fraction) return *file.number(value.key);
  const int64_t number = *file.integer(value.key);
  return number == 0 ? nlohmann::json() : nlohmann::json(number);
}

// Adds the settings that the file expresses by its tensors.
void add_tensors(nlohmann::json& config, const Gguf& file) {
  for (const char* name :
       {"output.weight", "blk.0.attn_q.bias", "blk.0.attn_qkv.bias", "blk.0.attn_output.bias",
        "blk.0.ffn_up.bias", "enc.blk.0.ffn_gate.weight", "cls.weight", "cls.bias",
        "cls.norm.weight", "cls.output.bias", kGgufQueryNorm}) {
    if (file.find_tensor(name) != nullptr) config[name] = true;
  }
  for (const char* name :
       {"rope_freqs.weight", "rope_factors_short.weight", "rope_factors_long.weight"}) {
    const GgufTensor* tensor = file.find_tensor(name);
    if (tensor == nullptr) continue;
    if (tensor->block->name != std::string_view("F32") || tensor->shape.size() != 1 ||
        tensor->bytes > kLongestList * sizeof(float)) {
      fail(ErrorKind::BadFile, "{}: {} is {} {}; expected a one-dimensional F32 tensor",
           file.path(), name, tensor->block->name, tensor->shape);
    }
    std::vector<float> numbers(tensor->bytes / sizeof(float));
    std::copy_n(tensor->data, tensor->bytes, reinterpret_cast<char*>(numbers.data()));
    config[name] = numbers;
  }
  for (const GgufTensor& tensor : file.tensors())
    if (tensor.name.ends_with(kGgufSelectionBias)) config[kGgufSelectionBias] = true;
  for (const auto& [name, key] :
       {std::pair("token_embd.weight", "vocab_size"), {"token_types.weight", "token_types.weight"}})
    if (const GgufTensor* table = file.find_tensor(name)) config[key] = table->shape[0];
}

// The labels of a classifier, and whether they exclude one another: an addition of fovea.
constexpr const char *kOutputLabels = ".classifier.output_labels",
                     *kProblemType = ".classifier.problem_type";

// Adds the head for labels of texts, under the keys of config.json.
void add_head(nlohmann::json& config, const Gguf& file, const std::string& architecture) {
  const GgufTensor* output = file.find_tensor("cls.output.weight");
  if (output == nullptr) return;
  const int64_t labels = output->shape[0];
  config["architectures"] = {kGgufClassifier};
  config["num_labels"] = labels;
  if (const auto problem = file.text(architecture + kProblemType)) {
    config["problem_type"] = gguf_plain_text(file, architecture + kProblemType);
    config.erase(std::string(kProblemType).substr(1));
  }
  config.erase(std::string(kOutputLabels).substr(1));
  const auto names = file.texts(architecture + kOutputLabels);
  if (!names || names->empty()) return;
  if (std::ssize(*names) != labels)
    fail(ErrorKind::BadFile, "{}: {}{} has {} names; expected {}, the rows of cls.output.weight",
         file.path(), architecture, kOutputLabels, names->size(), labels);
  for (size_t i = 0; i < names->size(); ++i) {
    const std::string_view name = (*names)[i];
    if (text::utf8::valid_prefix(name) < name.size() || name.find('\0') != name.npos)
      fail(ErrorKind::BadFile, "{}: {}{}[{}] is not text; expected UTF-8 without NUL", file.path(),
           architecture, kOutputLabels, i);
    config["id2label"][std::to_string(i)] = std::string(name);
  }
}

nlohmann::json config_of(const Gguf& file, const std::string& architecture) {
  nlohmann::json config = nlohmann::json::object();
  const std::string prefix = architecture + ".";
  for (const GgufValue& value : file.values()) {
    if (!value.key.starts_with(prefix)) continue;
    if (value.is_array && value.count > kLongestList) {
      fail(ErrorKind::BadFile, "{}: {} has {} elements; expected at most {}", file.path(),
           excerpt(value.key), value.count, kLongestList);
    }
    config[value.key.substr(prefix.size())] = json_of(file, value);
  }
  add_tensors(config, file);
  add_head(config, file, architecture);
  return config;
}

bool is_tensor(const std::string& key) {
  return key.ends_with(".weight") || key.ends_with(".bias");
}

void write_config(GgufMetadata& metadata, const std::string& architecture,
                  const nlohmann::ordered_json& config) {
  for (const auto& [key, value] : config.items()) {
    if (is_tensor(key) || key == "architectures" || key == "model_type" || value.is_object())
      continue;
    const std::string full = architecture + "." + key;
    if (value.is_boolean()) {
      metadata.boolean(full, value);
    } else if (value.is_number_integer()) {
      metadata.integer(full, value);
    } else if (value.is_number()) {
      metadata.number(full, value);
    } else if (value.is_string()) {
      metadata.text(full, value.get<std::string>());
    } else if (!value.empty() && value[0].is_number_integer()) {
      metadata.integers(full, value.get<std::vector<int32_t>>());
    } else {
      metadata.booleans(full, value.get<std::vector<bool>>());
    }
  }
}

const GgufBlock& block_named(std::string_view name) {
  for (uint32_t number = 0; number < 64; ++number)
    if (const auto* block = find_gguf_block(number); block != nullptr && block->name == name)
      return *block;
  fail(ErrorKind::Internal, "{}: no such block", name);
}

// Returns the quantisation of the packed weights: int4 if any weight has it, else int8; unset if no
// weight is quantised.
std::optional<Quantization> quantization_of(Transformer& model) {
  std::optional<Quantization> found;
  model.each([&](const std::string&, const Parameter& p) {
    if (!p.packed || !fovea::is_quantized(p.packed.matrix().format)) return;
    if (!found || p.packed.matrix().format == WeightFormat::int4)
      found = {p.packed.matrix().format, p.packed.matrix().group};
  });
  return found;
}

// Throws InvalidArgument if a number is too large for f16, or for blocks with scales in f16.
void check_range(const std::string& name, const Tensor& values, const char* block) {
  const float* x = values.data_as<float>();
  constexpr float kBeyond = 65520;  // rounds to infinity
  if (std::any_of(x, x + values.size(),
                  [](float v) { return std::isfinite(v) && std::fabs(v) >= kBeyond; })) {
    fail(ErrorKind::InvalidArgument,
         "model: {} has numbers above 65504, the largest of {}; expected a dtype with a larger "
         "range",
         name, block);
  }
}

// Vectors, also in rows, tables of positions and types, routers, convolutions and heads for labels
// are small, and llama.cpp computes with them in F32.
bool stays_exact(const std::string& name, const Shape& shape) {
  return shape.size() == 1 || name == "position_embd.weight" || name == "token_types.weight" ||
         name.starts_with("cls.") || name.ends_with("ffn_gate_inp.weight") ||
         name.ends_with("ssm_conv1d.weight") || name.ends_with("ssm_a") ||
         name.ends_with("ssm_d") || name.ends_with("ssm_norm.weight") ||
         name.ends_with("attn_rel_b.weight");
}

// Returns the tensors of a file, and zeros for the biases of the sums of experts.
std::shared_ptr<const TensorSource> tensors_of(const std::shared_ptr<const Gguf>& file,
                                               const Family& architecture) {
  constexpr std::string_view kExperts = "ffn_up_exps.weight";
  const auto tensors = std::make_shared<GgufTensors>(file);
  if (&architecture != &gguf_nomic_bert_moe) return tensors;
  for (const GgufTensor& tensor : file->tensors())
    if (tensor.name.ends_with(kExperts))
      tensors->add_zeros(tensor.name.substr(0, tensor.name.size() - kExperts.size()) + kGgufSumBias,
                         {tensor.shape.back()});
  return tensors;
}

}  // namespace

Spec read_gguf_spec(const std::string& path) {
  const Gguf file(path);
  const Family& architecture = *gguf_pair_of(file).architecture;
  const nlohmann::json config = config_of(file, architecture.model_type);
  Spec spec;
  Config reader(config, path);
  describe(reader, architecture, spec);
  return spec;
}

ModelFiles open_gguf_files(const std::string& path, const Loading& loading) {
  const auto file = std::make_shared<const Gguf>(path);
  const auto& [architecture, family] = gguf_pair_of(*file);
  ModelFiles files = load_model(*architecture, config_of(*file, architecture->model_type), path,
                                tensors_of(file, *architecture), loading, path);
  Spec& spec = files.model.spec;
  const auto padding = file->integer("tokenizer.ggml.padding_token_id");
  if (spec.encoder && padding && *padding >= 0 && *padding < spec.vocabulary)
    spec.padding = *padding;
  files.origin.family = can_express(*family, spec) ? family : &family_for(spec);
  files.origin.quantization = quantization_of(files.model);
  if (architecture == &gguf_bert && spec.head.kind == HeadKind::sequence && !spec.head.transform)
    files.warnings.push_back(fmt::format(
        "{}: has no cls.weight, the layer before the labels, which llama.cpp's converter leaves "
        "out of BERT; labels may differ from those of the original model",
        path));
  for (const auto& [key, name] : {std::pair("bos", "bos"),
                                  {"eos", "eos"},
                                  {"padding", "pad"},
                                  {"cls", "cls"},
                                  {"seperator", "sep"}}) {  // as GGUF spells it
    const auto id = file->integer(fmt::format("tokenizer.ggml.{}_token_id", key));
    if (!id || *id < 0 || *id >= spec.vocabulary) continue;
    files.origin.carried[fmt::format("{}_token_id", name)] = *id;
  }
  // Without the key, a class of transformers has the padding token of its first model.
  if (!files.origin.carried.contains("pad_token_id"))
    files.origin.carried["pad_token_id"] = nullptr;
  for (const char* key : {"eos", "eot", "eom"}) {
    const auto id = file->integer(fmt::format("tokenizer.ggml.{}_token_id", key));
    if (!id || *id < 0 || *id >= spec.vocabulary) continue;
    if (std::find(files.end_ids.begin(), files.end_ids.end(), *id) == files.end_ids.end())
      files.end_ids.push_back(static_cast<int32_t>(*id));
  }
  return files;
}

GgufValues values_of(Transformer& model, WeightsInFile* file) {
  std::map<std::string, const Parameter*> parameters;
  model.each([&](const std::string& name, const Parameter& p) { parameters[name] = &p; });
  const auto read = [parameters, file](const std::string& name) {
    return file != nullptr && file->has(name) ? file->read(name) : floats_of(*parameters.at(name));
  };
  return {.read = read, .file = file};
}

GgufModel::GgufModel(Transformer& model, const Family* family, FileDType dtype, bool importance) {
  Spec spec = gguf_spec(model.spec);
  const Family& architecture = gguf_architecture_for(spec, family);
  architecture_ = architecture.model_type;
  if (!can_express(architecture, spec)) {
    tiled_ = spec.decoder->delta;
    spec = *with_tiled_heads(spec);
  }
  if (spec.head.kind == HeadKind::sequence) labels_ = spec.head.labels;
  if (spec.decoder) {
    const ExpertsSpec& experts = spec.decoder->ffn.experts;
    groups_by_best_ = experts.groups > 1 && !experts.selection_bias;
  }
  words_left_out_ = spec.encoder && model.spec.head.kind == HeadKind::language_model;
  const GgufFileType& type = gguf_file_type(dtype);
  block_ = type.block;
  width_ = spec.width;
  const GgufMix mix = {type, spec, &architecture == &gguf_llama, importance};
  Config config;
  describe(config, architecture, spec);
  metadata.text("general.architecture", architecture.model_type);
  metadata.integer("general.file_type", type.number);
  if (is_quantized(dtype)) metadata.integer("general.quantization_version", 2);
  write_config(metadata, architecture.model_type, config.written());
  if (spec.encoder)  // llama.cpp needs a type, even if there is no table of types
    metadata.integer("tokenizer.ggml.token_type_count",
                     static_cast<uint32_t>(std::max<int64_t>(1, spec.token_types)));
  for (const auto& [name, value] : config.written().items()) {
    if (!is_tensor(name) || !value.is_array()) continue;
    const auto numbers = value.get<std::vector<float>>();
    const std::string bytes(reinterpret_cast<const char*>(numbers.data()),
                            numbers.size() * sizeof(float));
    FileTensor constant;
    constant.name = name;
    add({constant, bytes, "F32"}, {std::ssize(numbers)});
  }
  const auto written = std::make_unique<Transformer>(spec);  // without the parts that are left out
  std::map<std::string, Shape> shapes;
  written->each([&](const std::string& name, const Parameter& p) { shapes[name] = p.shape; });
  for (const FileTensor& tensor : file_tensors(architecture, *written)) {
    if (tensor.name.ends_with(kGgufSumBias)) {
      zeros_.push_back(tensor.parts.front());
      continue;
    }
    std::vector<Shape> parts;
    for (const std::string& part : tensor.parts) parts.push_back(shapes.at(part));
    const Shape shape = shape_in_file(tensor, parts);
    const bool positions = tensor.parts.front() == "encoder.position";
    const int64_t first = positions ? model.spec.encoder->position.offset : 0;
    add({tensor, "", stays_exact(tensor.name, shape) ? "F32" : block_in_mix(mix, tensor.name),
         first},
        shape);
  }
}

GgufTensor gguf_tensor(const std::string& name, const Shape& shape, const std::string& wanted) {
  GgufTensor tensor;
  tensor.name = name;
  tensor.block = &block_named(fallback_block(wanted, shape.back()));
  tensor.shape.assign(shape.begin(), shape.end());
  tensor.bytes =
      static_cast<size_t>(fovea::elements(shape)) / tensor.block->elements * tensor.block->bytes;
  return tensor;
}

namespace {

// Returns the rows of x from `first` on.
Tensor rows_from(const Tensor& x, int64_t first) {
  if (first == 0) return x;
  Shape shape = x.shape();
  shape[0] -= first;
  const Tensor rows = empty(shape);
  std::copy_n(x.data_as<float>() + x.size() - rows.size(), rows.size(), rows.data_as<float>());
  return rows;
}

}  // namespace

std::string gguf_elements(const GgufTensor& tensor, const Tensor& values,
                          const ImportanceMatrix* importance, std::vector<std::string>& warnings) {
  const std::string& name = tensor.name;
  const bool quantized = find_gguf_format(tensor.block->name) != nullptr;
  const int64_t bad = count_nonfinite(values);
  if (quantized) check_quantizable("model", name, bad, values.size());
  if (bad > 0)
    warnings.push_back(
        fmt::format("{} of {} elements of {} are not finite", bad, values.size(), name));
  if (quantized || tensor.block->name == std::string_view("F16"))
    check_range(name, values, tensor.block->name);
  std::vector<float> weights;
  if (quantized && importance != nullptr) {
    const int64_t matrices = tensor.shape.size() == 3 ? tensor.shape[0] : 1;
    weights = importance->weights_of(name, matrices, tensor.shape.back());
  }
  return encode_gguf(tensor.block->name, values, weights);
}

void GgufModel::add_labels(const Origin& origin) {
  if (labels_ == 0) return;
  std::vector<std::string> names = origin.labels;
  if (std::ssize(names) != labels_) {
    names.clear();
    for (int64_t i = 0; i < labels_; ++i) names.push_back(fmt::format("LABEL_{}", i));
  }
  metadata.texts(architecture_ + kOutputLabels, names);
  if (origin.problem == ProblemType::regression || origin.problem == ProblemType::multi_label)
    metadata.text(architecture_ + kProblemType, origin.problem == ProblemType::regression
                                                    ? "regression"
                                                    : "multi_label_classification");
}

void GgufModel::add_modules(const TextVectorModules& modules) {
  if (modules.pooling == GgufPooling::none) return;
  metadata.integer(architecture_ + kGgufPoolingType, static_cast<uint32_t>(modules.pooling));
  check_dense(modules, architecture_, width_);
  for (size_t i = 0; i < modules.dense.size(); ++i) {
    const Tensor& weight = modules.dense[i];
    const std::string name = kGgufDense[i], key = fmt::format("{}.{}_feat_", architecture_, name);
    metadata.integer(key + "in", static_cast<uint32_t>(weight.dim(1)));
    metadata.integer(key + "out", static_cast<uint32_t>(weight.dim(0)));
    Source source;
    source.tensor.name = name + ".weight";
    source.wanted = block_;
    source.values = weight;
    add(std::move(source), weight.shape());
  }
}

void GgufModel::add(Source source, const Shape& shape) {
  tensors_.push_back(gguf_tensor(source.tensor.name, shape, source.wanted));
  sources_.push_back(std::move(source));
}

std::vector<FileTensor> GgufModel::matrices() const {
  std::vector<FileTensor> found;
  for (size_t i = 0; i < tensors_.size(); ++i)
    if (tensors_[i].shape.size() > 1) found.push_back(sources_[i].tensor);
  return found;
}

std::vector<std::string> GgufModel::warnings(const GgufValues& values) const {
  std::vector<std::string> messages;
  add_fallbacks(messages);
  if (words_left_out_)
    messages.emplace_back("the head for masked words is left out, which no GGUF file holds");
  if (groups_by_best_)
    messages.emplace_back(
        "llama.cpp chooses groups of experts by their two best experts, this model by the best "
        "one: results change");
  for (const std::string& name : zeros_) {
    const std::vector<float> bias = to_floats(values.read(name));
    if (std::all_of(bias.begin(), bias.end(), [](float v) { return v == 0; })) continue;
    messages.push_back(fmt::format(
        "{} is left out, because llama.cpp adds no bias to the sum of experts: vectors change",
        name));
  }
  return messages;
}

void GgufModel::add_fallbacks(std::vector<std::string>& messages) const {
  std::map<std::string, std::vector<std::string>> changed;
  for (size_t i = 0; i < tensors_.size(); ++i) {
    const GgufTensor& tensor = tensors_[i];
    const GgufBlock& wanted = block_named(sources_[i].wanted);
    if (&wanted == tensor.block) continue;
    changed[fmt::format("rows of {} weights are not a multiple of {}: {} instead of {} for",
                        tensor.shape.back(), wanted.elements, tensor.block->name, wanted.name)]
        .push_back(tensor.name);
  }
  for (const auto& [message, names] : changed)
    messages.push_back(fmt::format("{} {}", message, first_names(names)));
}

std::string GgufModel::elements(size_t index, const GgufValues& values,
                                std::vector<std::string>& warnings) {
  const Source& source = sources_[index];
  const GgufTensor& tensor = tensors_[index];
  if (source.values) return gguf_elements(tensor, source.values, nullptr, warnings);
  if (source.tensor.parts.empty()) return source.elements;
  const bool reordered = tiled_ && std::ranges::any_of(source.tensor.parts, &has_delta_heads);
  if (values.file != nullptr && source.first_row == 0 && !reordered) {
    const auto bytes = values.file->bytes_of(source.tensor, tensor.block->name);
    if (bytes) return std::string(*bytes);
  }
  std::vector<Tensor> parts;
  for (const std::string& part : source.tensor.parts) {
    const Tensor value = values.read(part);
    parts.push_back(reordered ? with_tiled_heads(part, value, *tiled_) : value);
  }
  std::string encoded =
      gguf_elements(tensor, rows_from(to_file(source.tensor, parts), source.first_row),
                    reordered ? nullptr : values.importance, warnings);
  if (values.file != nullptr) values.file->release();
  return encoded;
}

}  // namespace fovea::model
