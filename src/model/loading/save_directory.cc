#include <algorithm>

#include "base/error.h"
#include "base/files.h"
#include "base/json.h"
#include "loading/loading.h"
#include "loading/shards.h"
#include "safetensors/safetensors.h"
#include "transformer/adapters.h"

namespace fovea::model {

Tensor floats_of(const Parameter& parameter) {
  if (parameter.packed) return parameter.packed.floats();
  const Tensor& value = parameter.value;
  return (value.dtype() == DType::bf16 ? convert(value, DType::f32) : value).to(cpu_device());
}

std::map<std::string, Tensor> checkpoint_tensors(Transformer& model, const Family& family,
                                                 bool keep_quantized) {
  if (has_adapters(model)) {
    Transformer merged = model;
    merge_adapters(merged);
    return checkpoint_tensors(merged, family, keep_quantized);
  }
  std::map<std::string, const Parameter*> parameters;
  std::map<std::string, Tensor> tensors;
  model.each([&](const std::string& name, Parameter& p) { parameters[name] = &p; });
  for (const FileTensor& tensor : file_tensors(family, model)) {
    std::vector<Tensor> parts;
    std::vector<PackedWeight> quantized;
    for (const std::string& part : tensor.parts) {
      const Parameter& p = *parameters.at(part);
      if (keep_quantized && p.packed && fovea::is_quantized(p.packed.matrix().format) &&
          can_be_quantized(tensor))
        quantized.push_back(p.packed);
      else
        parts.push_back(floats_of(p));
    }
    if (quantized.empty())
      tensors[tensor.name] = to_file(tensor, parts);
    else
      quantized_to_file(tensor, quantized, tensors);
  }
  return tensors;
}

const Family& family_to_save(const Spec& spec, const Origin& origin) {
  const bool same = origin.family != nullptr && can_express(*origin.family, spec);
  return same ? *origin.family : family_for(spec);
}

namespace {

void write_labels(const std::vector<std::string>& labels, nlohmann::ordered_json& config) {
  config["id2label"] = config["label2id"] = nlohmann::ordered_json::object();
  for (size_t i = 0; i < labels.size(); ++i) {
    config["id2label"][std::to_string(i)] = labels[i];
    config["label2id"][labels[i]] = i;
  }
}

// Writes how transformers computes the loss of a classifier.
void write_classifier(const Spec& spec, const Origin& origin, nlohmann::ordered_json& config) {
  if (spec.head.kind != HeadKind::sequence || origin.problem == ProblemType::automatic) return;
  const auto name = [&] {
    switch (origin.problem) {
      case ProblemType::regression: return "regression";
      case ProblemType::multi_label: return "multi_label_classification";
      default: return "single_label_classification";
    }
  };
  config["problem_type"] = name();
}

// Returns the token that texts begin with: the checkpoint's, or else, for a decoder-only model, the
// token that ends the previous text.
std::optional<int32_t> first_id(const Spec& spec, const Origin& origin,
                                std::optional<int32_t> end_id) {
  if (const auto configured = configured_id(origin, "bos_token_id")) return configured;
  return spec.encoder ? std::nullopt : end_id;
}

}  // namespace

std::string config_json(const Transformer& model, const Origin& origin,
                        std::optional<int32_t> end_id) {
  Config config;
  Spec spec = model.spec;
  const Family& family = family_to_save(spec, origin);
  describe(config, family, spec);
  config.write("dtype", origin.dtype == DType::bf16  ? "bfloat16"
                        : origin.dtype == DType::f16 ? "float16"
                                                     : "float32");
  nlohmann::ordered_json written = config.written();
  if (origin.quantization && written.contains("quantization_config"))
    fail(ErrorKind::Unsupported,
         "model: its matrices are ternary, and are not quantised otherwise; expected full weights");
  if (origin.quantization) written["quantization_config"] = quantization_json(*origin.quantization);
  if (std::ssize(origin.labels) == spec.head.labels && spec.head.labels > 0)
    write_labels(origin.labels, written);
  if (&family == origin.family) {
    for (const auto& [key, value] : origin.carried.items())
      if (key != "torch_dtype" && !written.contains(key)) written[key] = value;
    write_classifier(spec, origin, written);
    return pretty(written);
  }
  // The keys are written even if they are null, because the defaults of transformers belong to the
  // vocabulary of the original model.
  const nlohmann::ordered_json none;
  const auto first = first_id(spec, origin, end_id);
  written["bos_token_id"] = first ? nlohmann::ordered_json(*first) : none;
  written["eos_token_id"] = end_id ? nlohmann::ordered_json(*end_id) : none;
  if (!written.contains("pad_token_id")) written["pad_token_id"] = none;
  write_classifier(spec, origin, written);
  return pretty(written);
}

std::string generation_config_json(const Spec& spec, const Origin& origin,
                                   std::optional<int32_t> end_id) {
  if (!origin.generation.is_null()) return pretty(origin.generation);
  nlohmann::ordered_json json;
  json["_from_model_config"] = false;
  if (const auto first = first_id(spec, origin, end_id)) json["bos_token_id"] = *first;
  if (end_id) json["eos_token_id"] = *end_id;
  json["do_sample"] = true;
  return pretty(json);
}

namespace {

// Converts f32 tensors to the dtypes of the origin.
std::map<std::string, Tensor> in_dtype(std::map<std::string, Tensor> tensors, const Origin& origin,
                                       const std::string& folder) {
  for (auto& [name, tensor] : tensors) {
    const auto own = origin.dtypes.find(name);
    const DType dtype = own != origin.dtypes.end() ? own->second : origin.dtype;
    if (tensor.dtype() != DType::f32 || dtype == DType::f32) continue;
    const int64_t before = count_nonfinite(tensor);
    tensor = dtype == DType::f16 ? narrow_to_halves(tensor) : convert(tensor, dtype);
    if (count_nonfinite(tensor) > before) {
      const bool halves = dtype == DType::f16;
      fail(ErrorKind::InvalidArgument,
           "{}: {} has numbers above {}'s {}; expected a dtype with a larger range", folder, name,
           name_of(dtype), halves ? "65504" : "3.39e38");
    }
  }
  return tensors;
}

}  // namespace

void save_model_files(const std::string& folder, Transformer& model, std::optional<int32_t> end_id,
                      const Origin& origin) {
  const Family& family = family_to_save(model.spec, origin);
  write_weights(
      folder,
      in_dtype(checkpoint_tensors(model, family, origin.quantization.has_value()), origin, folder),
      origin.shard_bytes);
  write_file_atomically(folder + "/config.json", config_json(model, origin, end_id));
  write_file_atomically(folder + "/generation_config.json",
                        generation_config_json(model.spec, origin, end_id));
}

}  // namespace fovea::model
