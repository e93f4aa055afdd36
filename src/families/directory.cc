#include "families/directory.h"

#include <algorithm>
#include <cstring>
#include <filesystem>

#include "base/error.h"
#include "base/files.h"
#include "base/json.h"
#include "checkpoint/safetensors.h"
#include "families/gguf.h"
#include "families/loader.h"
#include "families/open_adapters.h"
#include "families/refuse_path.h"
#include "model/adapters.h"

namespace fovea {
std::vector<int32_t> ids_under(const nlohmann::json& json, const char* key) {
  std::vector<int32_t> ids;
  const auto at = json.find(key);
  if (at == json.end()) return ids;
  for (const auto& id : at->is_array() ? *at : nlohmann::json::array({*at}))
    if (id.is_number_integer() && id >= 0 && id <= INT32_MAX) ids.push_back(id.get<int32_t>());
  return ids;
}

namespace {

std::optional<int32_t> first_id_under(const std::vector<nlohmann::json>& files, const char* key) {
  for (const nlohmann::json& json : files) {
    if (!json.is_object()) continue;
    if (const auto ids = ids_under(json, key); !ids.empty()) return ids[0];
  }
  return std::nullopt;
}

std::vector<int32_t> end_ids(const std::string& folder, const nlohmann::json& config) {
  const std::string path = folder + "/generation_config.json";
  if (is_file(path)) {
    if (auto ids = ids_under(read_json(path), "eos_token_id"); !ids.empty()) return ids;
  }
  return ids_under(config, "eos_token_id");
}

// Returns the name of the tensor of an untied head; empty if the family has none. A file may
// contain such a tensor although config.json ties the head to the embedding.
std::string name_of_head(const Spec& spec, const Family& family) {
  Spec untied = spec;
  untied.head.tied = false;
  Transformer model(untied);
  for (const FileTensor& tensor : file_tensors(family, model))
    if (tensor.parts[0] == "head.output.weight") return tensor.name;
  return "";
}

// Returns whether the file has a pooler (the dense layer on the first token); models that are used
// only for token vectors may lack it.
bool has_pooler(const Spec& spec, const Family& family, const Loader& loader) {
  Transformer model(spec);
  const auto tensors = file_tensors(family, model);
  return std::any_of(tensors.begin(), tensors.end(), [&](const FileTensor& tensor) {
    return tensor.parts[0].starts_with("pooler.") && loader.find(tensor.name) != nullptr;
  });
}

bool is_another(const TensorSource& file, const std::string& head, const StoredTensor* table) {
  const StoredTensor* found = file.find(head);
  return found != nullptr && table != nullptr &&
         (found->bytes != table->bytes || std::memcmp(found->data, table->data, found->bytes) != 0);
}

void write_labels(const std::vector<std::string>& labels, nlohmann::ordered_json& config) {
  config["id2label"] = config["label2id"] = nlohmann::ordered_json::object();
  for (size_t i = 0; i < labels.size(); ++i) {
    config["id2label"][std::to_string(i)] = labels[i];
    config["label2id"][labels[i]] = i;
  }
}

}  // namespace

std::vector<std::string> labels_of(const nlohmann::json& config) {
  const auto names = config.find("id2label");
  std::vector<std::string> labels;
  if (names == config.end() || !names->is_object()) return labels;
  for (size_t i = 0; i < names->size(); ++i) {
    const auto name = names->find(std::to_string(i));
    if (name == names->end() || !name->is_string()) return {};
    labels.push_back(*name);
  }
  return labels;
}

std::optional<int32_t> special_id(const Origin& origin, const char* key) {
  return first_id_under({origin.generation, origin.carried}, key);
}
std::optional<int32_t> configured_id(const Origin& origin, const char* key) {
  return first_id_under({origin.carried, origin.generation}, key);
}

ModelFiles load_model(const Family& family, const nlohmann::json& config, const std::string& name,
                      const TensorSource& file, const Loading& loading, const std::string& path) {
  ModelFiles files;
  files.origin.family = &family;
  files.origin.quantization = loading.quantization;
  Spec spec;
  Config reader(config, name);
  describe(reader, family, spec);
  files.origin.carried = reader.carried();
  files.origin.labels = labels_of(config);
  if (loading.new_head != nullptr) {
    spec.head = *loading.new_head;
    spec = validated(spec);
  }
  Loader loader(file, family, loading, files, path);
  if (spec.head.tied) {
    Transformer tied(spec);
    const std::string head = name_of_head(spec, family);
    const auto tensors = file_tensors(family, tied);
    if (is_another(file, head, loader.find(tensors.front().name))) {
      spec.head.tied = false;
      files.warnings.push_back(
          fmt::format("{}: config.json ties the head to the embedding, but the file has a "
                      "different head; the file's head is used",
                      path));
    } else {
      loader.pass_over(head);
    }
  }
  if (spec.head.kind == HeadKind::pooled && spec.head.transform)
    spec.head.transform = has_pooler(spec, family, loader);
  files.model = Transformer(spec);
  if (loading.only_sizes) {
    files.sizes = loader.sizes(files.model);
    return files;
  }
  loader.load(files.model);
  loader.report(files.warnings);
  files.missing = loader.lacking;
  const Packing& packing = loading.packing;
  if (!files.origin.quantization && packing.format && is_quantized(*packing.format))
    files.origin.quantization = Quantization{*packing.format, packing.group};
  return files;
}

namespace {

ModelFiles open_files(const std::string& path, Loading loading) {
  if (is_gguf(path)) return open_gguf_files(path, loading);
  if (!is_folder(path)) refuse_path(path);
  const std::string config_path = path + "/config.json";
  nlohmann::json config = read_json(config_path);
  if (!config.is_object())
    fail(ErrorKind::BadFile, "{}: not an object; expected keys and values in braces", config_path);
  loading.quantization = take_quantization(config, config_path);
  if (loading.quantization && loading.weights == Weights::owned) {
    fail(ErrorKind::Unsupported,
         "{}: the weights are quantised (quantization_config); expected full weights to train",
         config_path);
  }
  const Family& family = family_named(get_string(config, "model_type", config_path), config_path);
  ModelFiles files =
      load_model(family, config, config_path, SafeTensors::open_model(path), loading, path);
  if (const std::string generation = path + "/generation_config.json"; is_file(generation))
    files.origin.generation = read_json(generation);
  files.end_ids = end_ids(path, config);
  return files;
}

}  // namespace

ModelFiles open_model_files(const std::string& path, Weights weights, const Packing& packing,
                            const std::vector<AdapterUse>& adapters) {
  const AdaptedModel adapted = adapted_model(path, adapters);
  Loading loading{.weights = weights, .packing = packing};
  if (adapted.head) loading.new_head = &*adapted.head;
  ModelFiles files = open_files(adapted.base, loading);
  files.base = adapted.base;
  add_adapters(files, adapted, weights);
  for (const AdapterUse& use : adapted.adapters) {  // an adapter of chats ends answers by itself
    const std::string generation = use.folder + "/generation_config.json";
    if (!is_file(generation)) continue;
    files.origin.generation = read_json(generation);
    if (auto ids = ids_under(files.origin.generation, "eos_token_id"); !ids.empty())
      files.end_ids = std::move(ids);
    break;
  }
  return files;
}
ModelFiles open_with_head(const std::string& path, Weights weights, const Packing& packing,
                          const HeadSpec& head) {
  ModelFiles files = open_files(path, {.weights = weights, .packing = packing, .new_head = &head});
  files.base = path;
  return files;
}

WeightSizes weight_sizes(const std::string& path, const Packing& packing) {
  return open_files(path, {.weights = Weights::packed, .packing = packing, .only_sizes = true})
      .sizes;
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
      if (keep_quantized && p.packed && is_quantized(p.packed.matrix().format) &&
          can_be_quantized(tensor))
        quantized.push_back(p.packed);
      else
        parts.push_back(p.packed                         ? p.packed.floats()
                        : p.value.dtype() == DType::bf16 ? convert(p.value, DType::f32)
                                                         : p.value);
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

// Returns the token that texts begin with: the checkpoint's, or else, for a decoder-only model, the
// token that ends the previous text.
std::optional<int32_t> first_id(const Spec& spec, const Origin& origin,
                                std::optional<int32_t> end_id) {
  if (const auto told = configured_id(origin, "bos_token_id")) return told;
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
  if (origin.quantization) written["quantization_config"] = quantization_json(*origin.quantization);
  if (std::ssize(origin.labels) == spec.head.labels && spec.head.labels > 0)
    write_labels(origin.labels, written);
  if (&family == origin.family) {
    for (const auto& [key, value] : origin.carried.items())
      if (key != "torch_dtype" && !written.contains(key)) written[key] = value;
    return pretty(written);
  }
  // Both keys are written even if they are null, because the defaults of transformers belong to the
  // vocabulary of the original model.
  const nlohmann::ordered_json none;
  const auto first = first_id(spec, origin, end_id);
  written["bos_token_id"] = first ? nlohmann::ordered_json(*first) : none;
  written["eos_token_id"] = end_id ? nlohmann::ordered_json(*end_id) : none;
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
  write_safetensors(
      folder + "/model.safetensors",
      in_dtype(checkpoint_tensors(model, family, origin.quantization.has_value()), origin, folder));
  write_file_atomically(folder + "/config.json", config_json(model, origin, end_id));
  write_file_atomically(folder + "/generation_config.json",
                        generation_config_json(model.spec, origin, end_id));
}

}  // namespace fovea
