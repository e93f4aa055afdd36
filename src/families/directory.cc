#include "families/directory.h"

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <memory>

#include "base/error.h"
#include "base/files.h"
#include "base/folder_links.h"
#include "base/ggml_file.h"
#include "base/json.h"
#include "base/settings.h"
#include "checkpoint/safetensors.h"
#include "families/gguf.h"
#include "families/image_text.h"
#include "families/loader.h"
#include "families/model_path.h"
#include "families/open_adapters.h"
#include "families/other_formats.h"
#include "families/timm.h"
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

// Returns whether the file has a pooler (the dense layer on the first token); models that are used
// only for token vectors may lack it.
bool has_pooler(const Spec& spec, const Family& family, const Loader& loader) {
  const auto model = std::make_unique<Transformer>(spec);
  const auto tensors = file_tensors(family, *model);
  return std::any_of(tensors.begin(), tensors.end(), [&](const FileTensor& tensor) {
    return tensor.parts[0].starts_with("pooler.") && loader.find(tensor.name) != nullptr;
  });
}

bool is_another(const TensorSource& file, const std::string& head, const StoredTensor* table) {
  const StoredTensor* found = file.find(head);
  return found != nullptr && table != nullptr &&
         (found->bytes != table->bytes || std::memcmp(found->data, table->data, found->bytes) != 0);
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

ProblemType problem_type_of(const nlohmann::json& config, const std::string& file) {
  const auto type = config.find("problem_type");
  if (type == config.end() || type->is_null()) return ProblemType::automatic;
  if (*type == "regression") return ProblemType::regression;
  if (*type == "multi_label_classification") return ProblemType::multi_label;
  if (*type == "single_label_classification") return ProblemType::single_label;
  fail(ErrorKind::Unsupported,
       "{}: problem_type is {}; expected regression, single_label_classification or "
       "multi_label_classification",
       file, brief(*type));
}

std::optional<int32_t> special_id(const Origin& origin, const char* key) {
  return first_id_under({origin.generation, origin.carried}, key);
}
std::optional<int32_t> configured_id(const Origin& origin, const char* key) {
  return first_id_under({origin.carried, origin.generation}, key);
}

ModelFiles load_model(const Family& family, const nlohmann::json& config, const std::string& name,
                      const std::shared_ptr<const TensorSource>& source, const Loading& loading,
                      const std::string& path) {
  const TensorSource& file = *source;
  ModelFiles files;
  if (loading.weights == Weights::in_file) files.in_file = std::make_shared<WeightsInFile>(source);
  files.origin.family = &family;
  files.origin.quantization = loading.quantization;
  Spec spec;
  Config reader(config, name);
  describe(reader, family, spec);
  files.origin.carried = reader.carried();
  files.origin.labels = labels_of(config);
  files.origin.problem = problem_type_of(config, name);
  if (loading.new_head != nullptr) spec.head = *loading.new_head;
  if (!loading.final_norm) spec.encoder->final_norm = false;
  if (loading.new_head != nullptr || !loading.final_norm) spec = validated(spec);
  Loader loader(file, family, loading, files, path);
  if (spec.head.tied) {
    const auto tied = std::make_unique<Transformer>(spec);
    const std::string head = name_of_head(spec, family);
    const auto tensors = file_tensors(family, *tied);
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
  if (spec.head.kind == HeadKind::pooled && spec.head.transform) {
    spec.head.transform = has_pooler(spec, family, loader);
    spec = validated(spec);
  }
  files.model = std::move(*std::make_unique<Transformer>(spec));
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
  require_model(path);
  if (is_gguf(path)) return open_gguf_files(path, loading);
  if (is_ggml(path)) return open_ggml_files(path, loading);
  if (!is_folder(path)) refuse_path(path);
  refuse_links_out(path);
  if (is_ct2_folder(path)) return open_ct2_files(path, loading);
  const std::string config_path = path + "/config.json";
  if (!is_file(config_path)) refuse_path(path);
  nlohmann::json config = read_json(config_path);
  if (!config.is_object())
    fail(ErrorKind::BadFile, "{}: not an object; expected keys and values in braces", config_path);
  loading.quantization = take_quantization(config, config_path);
  if (loading.quantization && loading.weights == Weights::owned) {
    fail(ErrorKind::Unsupported,
         "{}: the weights are quantised (quantization_config); expected full weights to train",
         config_path);
  }
  const Family *family = nullptr, *save_as = nullptr;
  std::shared_ptr<const TensorSource> tensors;
  if (reads_images(config)) {
    if (loading.weights == Weights::owned)
      fail(ErrorKind::Unsupported,
           "{}: a model of texts with pictures cannot be trained; expected a model of texts", path);
    TextConfig text = text_config(config, path);
    tensors = text_tensors(config, path);
    family = text.family;
    config = std::move(text.json);
  } else if (is_timm_config(config)) {
    tensors = std::make_shared<SafeTensors>(SafeTensors::open_model(path));
    TimmModel timm = timm_model(config, *tensors, config_path);
    family = timm.family, save_as = timm.save_as;
    config = std::move(timm.config);
  } else {
    family = &family_named(get_string(config, "model_type", config_path), config_path);
    tensors = std::make_shared<SafeTensors>(SafeTensors::open_model(path));
  }
  ModelFiles files = load_model(*family, config, config_path, tensors, loading, path);
  if (save_as != nullptr) files.origin.family = save_as;
  if (const std::string generation = path + "/generation_config.json"; is_file(generation)) {
    files.origin.generation = read_json(generation);
    refuse_unknown_settings(files.origin.generation, generation, "generation_config.json", {});
  }
  if (const std::string sound = path + "/preprocessor_config.json";
      files.model.spec.input.kind == InputKind::audio && is_file(sound))
    refuse_unknown_settings(read_json(sound), sound, "preprocessor_config.json of speech", {});
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
  return files;
}
ModelFiles open_with_head(const std::string& path, Weights weights, const Packing& packing,
                          const HeadSpec& head) {
  ModelFiles files = open_files(path, {.weights = weights, .packing = packing, .new_head = &head});
  files.base = path;
  return files;
}

Spec read_other_spec(const std::string& path) {
  return open_files(path, {.weights = Weights::packed, .only_sizes = true}).model.spec;
}

WeightSizes weight_sizes(const std::string& path, const Packing& packing) {
  return open_files(path, {.weights = Weights::packed, .packing = packing, .only_sizes = true})
      .sizes;
}

}  // namespace fovea
