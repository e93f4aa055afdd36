#include "families/directory.h"

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <set>

#include "base/error.h"
#include "base/files.h"
#include "base/json.h"
#include "checkpoint/gguf_blocks.h"
#include "checkpoint/gguf_weights.h"
#include "checkpoint/safetensors.h"
#include "families/gguf.h"
#include "families/open_adapters.h"
#include "families/refuse_path.h"
#include "model/adapters.h"
#include "model/pack.h"

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

bool is_buffer(const Family& family, const std::string& name) {
  return std::any_of(family.buffers.begin(), family.buffers.end(),
                     [&](auto& end) { return name.ends_with(end); });
}

// Returns the default packed format of a tensor that is not packed as stored: blocks become bf16.
WeightFormat default_format(const StoredTensor& stored, DType dtype) {
  return dtype == DType::bf16 || find_gguf_format(stored.type) != nullptr ? WeightFormat::bf16
                                                                          : WeightFormat::f32;
}

// Returns whether the parameter may stay bf16 in inference, because the ops that read it widen it.
bool reads_bf16(const Parameter& p) {
  return p.role == Role::matrix || p.role == Role::residual_matrix || p.role == Role::head_matrix ||
         p.role == Role::token_embedding;
}

// Returns whether the elements are those of the file, not copies.
bool is_mapped(const Tensor& value, const StoredTensor& stored) {
  const auto* data = static_cast<const char*>(value.data());
  return data >= stored.data && data < stored.data + stored.bytes;
}

// The copies of tensors that wait to be packed may take this number of bytes.
constexpr size_t kMostCopied = size_t{128} << 20;

// Loads a file's tensors into a model, and records everything that does not fit.
class Loader {
 public:
  Loader(const TensorSource& file, const Family& family, const Loading& loading, ModelFiles& files,
         std::string folder)
      : file_(file),
        family_(family),
        loading_(loading),
        files_(files),
        folder_(std::move(folder)) {}

  void load(Transformer& model) {
    std::map<std::string, Parameter*> parameters;
    model.each([&](const std::string& name, Parameter& p) { parameters[name] = &p; });
    for (const FileTensor& tensor : file_tensors(family_, model, uses_names_in_memory(model))) {
      std::vector<Parameter*> parts;
      std::vector<Shape> shapes;
      for (const std::string& part : tensor.parts) {
        parts.push_back(parameters.at(part));
        shapes.push_back(parts.back()->shape);
      }
      const StoredTensor* stored = find(tensor.name);
      const Shape expected = shape_in_file(tensor, shapes);
      const bool of_head = tensor.parts[0].starts_with(std::string(model.head_name()) + ".");
      if (loading_.new_head != nullptr && of_head &&
          (stored == nullptr || stored->shape != expected)) {
        lacking.insert(lacking.end(), tensor.parts.begin(), tensor.parts.end());
        continue;
      }
      if (stored == nullptr) {
        missing_.push_back(tensor.name);
        continue;
      }
      used_.insert(stored->name);
      const bool whole_numbers = stored->dtype == DType::i8 || stored->dtype == DType::u8;
      if (files_.origin.quantization && whole_numbers && can_be_quantized(tensor)) {
        load_quantized(tensor, *stored, shapes, parts);
        continue;
      }
      if (stored->shape == expected) {
        if (loading_.weights == Weights::in_file)
          leave_in_file(tensor, *stored, shapes);
        else if (stays_in_blocks(model.spec, tensor, *stored, shapes, parts))
          load_blocks(tensor, *stored, shapes, parts);
        else
          load_full(model.spec, tensor, *stored, shapes, parts);
        if (copied_ > kMostCopied) pack_queued();
      } else {
        misshapen_.push_back(fmt::format("{} is {}, expected {}", tensor.name,
                                         describe(stored->shape), describe(expected)));
      }
    }
    pack_queued();
  }

  // Sets the name of a tensor that report() ignores: a copy of a tied weight.
  void pass_over(const std::string& name) { passed_over_ = name; }

  // Throws BadFile with a list of all problems, if there are any. Otherwise adds the warnings.
  void report(std::vector<std::string>& warnings) const {
    std::vector<std::string> unknown;
    for (const StoredTensor& stored : file_.stored()) {
      if (used_.contains(stored.name) || is_buffer(family_, stored.name)) continue;
      if (loading_.new_head != nullptr || stored.name == passed_over_) continue;
      unknown.push_back(stored.name);
    }
    std::vector<std::string> wrong;
    if (!missing_.empty())
      wrong.push_back(fmt::format("{} missing: {}", missing_.size(), first_names(missing_)));
    if (!misshapen_.empty())
      wrong.push_back(fmt::format("{} misshapen: {}", misshapen_.size(), first_names(misshapen_)));
    if (!unknown.empty())
      wrong.push_back(fmt::format("{} unknown: {}", unknown.size(), first_names(unknown)));
    if (!wrong.empty()) {
      fail(ErrorKind::BadFile,
           "{}: the tensors do not match the config ({}); expected a {} checkpoint of the config's "
           "sizes",
           folder_, fmt::join(wrong, "; "), family_.model_type);
    }
    warnings.insert(warnings.end(), not_finite_.begin(), not_finite_.end());
  }

  std::vector<std::string> lacking;  // parameters of a new head that the file lacks

  // Finds a tensor by its name, with or without the family's prefix, or by the old names of norms.
  // Returns null if there is none.
  const StoredTensor* find(const std::string& name) const {
    const std::string prefix = family_.prefix;
    std::vector<std::string> spellings = {name, prefix + name};
    if (!prefix.empty() && name.starts_with(prefix)) spellings[1] = name.substr(prefix.size());
    for (size_t i = 0; i < 2; ++i) {
      for (const auto& [now, once] : {std::pair(".weight", ".gamma"), {".bias", ".beta"}})
        if (spellings[i].ends_with(std::string("LayerNorm") + now))
          spellings.push_back(spellings[i].substr(0, spellings[i].rfind('.')) + once);
    }
    for (const std::string& spelling : spellings)
      if (const auto* stored = file_.find(spelling)) return stored;
    return nullptr;
  }

 private:
  // Returns whether the file uses the names that transformers has in memory, if they differ.
  bool uses_names_in_memory(Transformer& model) const {
    if (family_.names_in_memory.empty()) return false;
    const auto tensors = file_tensors(family_, model, true);
    return std::all_of(tensors.begin(), tensors.end(),
                       [&](const FileTensor& tensor) { return find(tensor.name) != nullptr; });
  }

  Tensor checked(const StoredTensor& stored) {
    const Tensor value = file_.tensor(stored.name);
    warn_of_nonfinite(stored, count_nonfinite(value), value.size());
    return value;
  }

  // Returns whether the blocks of a tensor are packed as they are stored: unless another format is
  // requested, matrices that would be packed anyway, and the token embedding.
  bool stays_in_blocks(const Spec& spec, const FileTensor& tensor, const StoredTensor& stored,
                       const std::vector<Shape>& shapes,
                       const std::vector<Parameter*>& parts) const {
    if (loading_.weights != Weights::packed || loading_.packing.format) return false;
    const auto format = format_as_stored(tensor, stored, shapes);
    if (!format) return false;
    for (size_t i = 0; i < parts.size(); ++i) {
      const auto packed = packed_format(spec, tensor.parts[i], *parts[i], WeightFormat::bf16);
      if (packed != WeightFormat::bf16 && tensor.parts[i] != "embedding.token") return false;
    }
    return true;
  }

  void load_blocks(const FileTensor& tensor, const StoredTensor& stored,
                   const std::vector<Shape>& shapes, const std::vector<Parameter*>& parts) {
    files_.origin.dtypes[tensor.name] = DType::f32;
    auto matrices = blocks_from_file(tensor, stored, shapes, file_);
    for (size_t i = 0; i < parts.size(); ++i) parts[i]->packed = matrices[i].weight;
    queue_.add(std::move(matrices), [this, &stored](int64_t bad) {
      warn_of_nonfinite(stored, bad, elements(stored.shape));
    });
  }

  // Packs what load_blocks() and load_full() have added.
  void pack_queued() {
    queue_.run();
    copied_ = 0;
  }

  void warn_of_nonfinite(const StoredTensor& stored, int64_t bad, int64_t size) {
    if (bad == 0) return;
    not_finite_.insert(
        fmt::format("{}: {} of {} elements of {} are not finite", folder_, bad, size, stored.name));
  }

  // Throws Unsupported if a tensor does not have floats.
  DType float_dtype(const FileTensor& tensor, DType dtype) const {
    if (dtype != DType::f32 && dtype != DType::bf16 && dtype != DType::f16 && dtype != DType::f64) {
      fail(ErrorKind::Unsupported, "{}: {} is {}; expected fp32, bf16, fp16 or fp64", folder_,
           tensor.name, name_of(dtype));
    }
    return dtype;
  }

  // Records the dtype in which a tensor will be saved.
  void save_as(const FileTensor& tensor, DType dtype) {
    files_.origin.dtypes[tensor.name] = dtype;
    if (dtype != DType::f32) files_.origin.dtype = dtype;
  }

  void leave_in_file(const FileTensor& tensor, const StoredTensor& stored,
                     const std::vector<Shape>& shapes) {
    const DType dtype = stored.dtype ? *stored.dtype : file_.tensor(stored.name).dtype();
    if (float_dtype(tensor, dtype) != DType::f64) save_as(tensor, dtype);
    files_.in_file->add(tensor, stored, shapes);
  }

  void load_full(const Spec& spec, const FileTensor& tensor, const StoredTensor& stored,
                 const std::vector<Shape>& shapes, const std::vector<Parameter*>& parts) {
    Tensor value = file_.tensor(stored.name);
    const DType dtype = float_dtype(tensor, value.dtype());
    const auto formats = formats_of(spec, tensor, default_format(stored, dtype), parts);
    const bool all_packed = std::all_of(formats.begin(), formats.end(),
                                        [](const auto& format) { return format.has_value(); });
    // Packing counts NaN and infinity. Converting fp64 could add infinity.
    const bool counted = !all_packed || dtype == DType::f64;
    if (counted) warn_of_nonfinite(stored, count_nonfinite(value), value.size());
    if (dtype == DType::f16) value = widen_halves(value);
    if (loading_.weights != Weights::owned && dtype != DType::f64) save_as(tensor, dtype);
    const bool as_bf16 =
        loading_.weights == Weights::packed && dtype == DType::bf16 &&
        tensor.stored != Stored::transposed &&
        std::all_of(parts.begin(), parts.end(), [](const Parameter* p) { return reads_bf16(*p); });
    const auto values = from_file(tensor, value, shapes, as_bf16);
    std::vector<PackingQueue::Matrix> matrices;
    for (size_t i = 0; i < parts.size(); ++i) {
      if (formats[i]) {
        matrices.push_back(packed_later(stored, values[i], *formats[i]));
        parts[i]->packed = matrices.back().weight;
        parts[i]->value = {};
      } else {
        const bool copies = loading_.weights == Weights::owned || parts.size() > 1;
        parts[i]->value = copies ? copy(values[i]) : values[i];
      }
    }
    if (all_packed && !is_mapped(values[0], stored)) file_.release(stored);
    if (!matrices.empty()) queue(tensor.name, stored, std::move(matrices), counted);
  }

  // Returns the formats of a tensor's parts; unset = not packed.
  std::vector<std::optional<WeightFormat>> formats_of(const Spec& spec, const FileTensor& tensor,
                                                      WeightFormat as_stored,
                                                      const std::vector<Parameter*>& parts) const {
    std::vector<std::optional<WeightFormat>> formats(parts.size());
    if (loading_.weights != Weights::packed) return formats;
    const WeightFormat wanted = loading_.packing.format.value_or(as_stored);
    for (size_t i = 0; i < parts.size(); ++i)
      formats[i] = packed_format(spec, tensor.parts[i], *parts[i], wanted);
    return formats;
  }

  // Returns a matrix that is packed from `value`: a part of the file, or a copy of one.
  PackingQueue::Matrix packed_later(const StoredTensor& stored, const Tensor& value,
                                    WeightFormat format) {
    const bool mapped = is_mapped(value, stored);
    if (!mapped) copied_ += value.bytes();
    const auto fill = [value, mapped, &stored, &file = file_](PackedWeight& weight, int64_t begin,
                                                              int64_t end) {
      const int64_t nonfinite = weight.fill(value, begin, end);
      if (!mapped) return nonfinite;
      const int64_t last = std::min(end * kPanelOutputs, value.dim(0));
      const Tensor rows = value.rows(begin * kPanelOutputs, last);
      file.release(stored, static_cast<const char*>(rows.data()), rows.bytes());
      return nonfinite;
    };
    const int64_t group = is_quantized(format) ? loading_.packing.group : 32;
    return {PackedWeight(format, value.dim(0), value.dim(1), group), fill};
  }

  // Queues the matrices of a tensor; `counted`: its NaN and infinities are known already.
  void queue(const std::string& name, const StoredTensor& stored,
             std::vector<PackingQueue::Matrix> matrices, bool counted) {
    bool quantizes = false;
    int64_t size = 0;
    for (const auto& [weight, fill] : matrices) {
      quantizes |= is_quantized(weight.matrix().format);
      size += weight.matrix().outputs * weight.matrix().width;
    }
    queue_.add(std::move(matrices), [this, name, &stored, quantizes, size, counted](int64_t bad) {
      if (quantizes) check_quantizable(folder_, name, bad, size);
      if (!counted) warn_of_nonfinite(stored, bad, size);
    });
  }

  void load_quantized(const FileTensor& tensor, const StoredTensor& stored,
                      const std::vector<Shape>& shapes, const std::vector<Parameter*>& parts) {
    const auto values = quantized_from_file(tensor, file_, stored, shapes,
                                            files_.origin.quantization->group, folder_);
    for (size_t i = 0; i < parts.size(); ++i) parts[i]->packed = values[i];
    const StoredTensor& scales = *file_.find(scale_name(stored.name));
    checked(scales);
    used_.insert(scales.name);
    file_.release(stored);
  }

  const TensorSource& file_;
  const Family& family_;
  const Loading& loading_;
  ModelFiles& files_;
  std::string folder_, passed_over_;
  std::set<std::string> used_, not_finite_;
  PackingQueue queue_;
  size_t copied_ = 0;  // bytes of tensors in the queue that are not in the mapping
  std::vector<std::string> missing_, misshapen_;
};

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
      load_model(family, config, config_path,
                 std::make_shared<SafeTensors>(SafeTensors::open_model(path)), loading, path);
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
  return files;
}
ModelFiles open_with_head(const std::string& path, Weights weights, const Packing& packing,
                          const HeadSpec& head) {
  ModelFiles files = open_files(path, {.weights = weights, .packing = packing, .new_head = &head});
  files.base = path;
  return files;
}

}  // namespace fovea
