#include <algorithm>
#include <cstring>
#include <memory>

#include "base/error.h"
#include "base/json.h"
#include "loading/loader.h"
#include "loading/loading.h"

namespace fovea::model {

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

// Returns whether the file has a pooler (the dense layer on the first token); models that are used
// only for token vectors may lack it.
bool has_pooler(const Spec& spec, const Family& family, const Loader& loader) {
  const auto model = std::make_unique<Transformer>(spec);
  const auto tensors = file_tensors(family, *model);
  return std::any_of(tensors.begin(), tensors.end(), [&](const FileTensor& tensor) {
    return tensor.parts[0].starts_with("pooler.") && loader.find(tensor.name) != nullptr;
  });
}

// Returns whether the file is that of the bare model: without the prefix, and without a head.
bool is_bare(const Spec& spec, const Family& family, const Loader& loader,
             const TensorSource& file) {
  const std::string prefix = family.prefix;
  const auto model = std::make_unique<Transformer>(spec);
  return !prefix.empty() && loader.find(name_of_head(spec, family)) == nullptr &&
         loader.find(file_tensors(family, *model).front().name) != nullptr &&
         std::none_of(file.stored().begin(), file.stored().end(),
                      [&](const StoredTensor& each) { return each.name.starts_with(prefix); });
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

Weights weights_of(WeightPrecision precision) {
  return precision == WeightPrecision::full ? Weights::mapped : Weights::packed;
}

Packing packing_of(WeightPrecision precision) {
  Packing packing;
  if (precision == WeightPrecision::fp32) packing.format = WeightFormat::f32;
  if (precision == WeightPrecision::bf16) packing.format = WeightFormat::bf16;
  if (precision == WeightPrecision::int8) packing.format = WeightFormat::int8;
  if (precision == WeightPrecision::int4) packing.format = WeightFormat::int4;
  return packing;
}

Packing packing_by_output(WeightPrecision precision) {
  Packing packing = packing_of(precision);
  if (packing.format == WeightFormat::int8) packing.group = 0;
  return packing;
}

std::vector<FormatBytes> largest_first(const std::map<std::string, int64_t>& formats) {
  std::vector<FormatBytes> list;
  for (const auto& [name, bytes] : formats) list.push_back({name, bytes});
  std::stable_sort(list.begin(), list.end(),
                   [](const FormatBytes& a, const FormatBytes& b) { return a.bytes > b.bytes; });
  return list;
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
  // Files of embedders may name the class of a language model.
  if (spec.head.kind == HeadKind::language_model && !spec.head.tied &&
      loading.new_head == nullptr && is_bare(spec, family, loader, file)) {
    for (const Architecture& each : family.architectures)
      if (each.head.kind == HeadKind::pooled) spec.head = each.head;
    spec = validated(spec);
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
  if (!files.origin.quantization && packing.format && fovea::is_quantized(*packing.format))
    files.origin.quantization = Quantization{*packing.format, packing.group};
  return files;
}

}  // namespace fovea::model
