#include <algorithm>
#include <memory>

#include "base/error.h"
#include "base/files.h"
#include "families/registry.h"
#include "formats/peft/adapters.h"
#include "formats/peft/experts.h"
#include "loading/loader.h"
#include "loading/loading.h"
#include "safetensors/safetensors.h"
#include "transformer/adapters.h"

namespace fovea::model {
namespace {

constexpr std::string_view kPeftDown = ".lora_A.weight", kPeftUp = ".lora_B.weight",
                           kTableDown = ".lora_embedding_B", kTableUp = ".lora_embedding_A",
                           kMagnitude = ".lora_magnitude_vector",
                           kRows = ".token_adapter.trainable_tokens_delta",
                           kBaseLayer = ".base_layer.weight";
constexpr const char* kHeadMatrix = "head.output.weight";
// The names of the decoder in models that read images, in transformers 5 and 4.
constexpr std::string_view kDecoders[] = {"model.language_model.", "model.text_model.",
                                          "language_model.model."};

std::string stem_of(const std::string& name, std::string_view ending) {
  return name.substr(0, name.size() - ending.size());
}

// [R, C] -> [C, R]
Tensor transpose_of(const Tensor& x) {
  const int64_t rows = x.dim(0), columns = x.dim(1);
  const Tensor y = empty({columns, rows});
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t c = 0; c < columns; ++c)
      y.data_as<float>()[c * rows + r] = x.data_as<float>()[r * columns + c];
  return y;
}

bool equal_values(const Tensor& a, const Tensor& b) { return to_floats(a) == to_floats(b); }

// Reads the folder of an adapter.
class PeftReader {
 public:
  PeftReader(const std::string& folder, const Family& family, Transformer& base)
      : config_(folder),
        path_(folder + "/" + kAdapterTensors),
        family_(&family),
        tied_(base.spec.head.tied),
        // It is large.
        own_(std::make_unique<Transformer>(base)),
        model_(*own_) {
    if (!is_file(path_) && is_file(folder + "/adapter_model.bin"))
      refuse_pickle(folder + "/adapter_model.bin");
    file_.emplace(path_);
    adapter_.folder = folder;
    adapter_.dropout = config_.dropout();
    if (is_of_roberta()) family_ = &roberta;
    // The head of a tied model is a module too.
    if (tied_ && !name_of_head(model_.spec, *family_).empty()) untie(model_);
    for (const ModuleNames names : {ModuleNames::files, ModuleNames::memory})
      for (AdapterModule& module : linear_modules(*family_, model_, names)) {
        std::string name = module.name;
        modules_.emplace(std::move(name), std::move(module));
      }
    for (const bool in_memory : {false, true})
      for (FileTensor& tensor : file_tensors(*family_, model_, in_memory))
        tensors_.emplace(tensor.name, std::move(tensor));
    for (const auto& [ours, parameter] : parameters_of(model_)) own_parameters_[ours] = parameter;
    parameters_ = targeted_parameters(*family_, model_, config_);
  }

  Adapter read() {
    std::map<std::string, StoredModule> found, tables;
    for (const StoredTensor& stored : file_->stored()) {
      const std::string name = module_of_base(stored);
      if (name.ends_with(kPeftDown))
        found[stem_of(name, kPeftDown)].down = &stored;
      else if (name.ends_with(kPeftUp))
        found[stem_of(name, kPeftUp)].up = &stored;
      else if (name.ends_with(kMagnitude))
        found[stem_of(name, kMagnitude)].magnitude = &stored;
      else if (name.ends_with(kTableDown))
        tables[stem_of(name, kTableDown)].down = &stored;
      else if (name.ends_with(kTableUp))
        tables[stem_of(name, kTableUp)].up = &stored;
      else if (name.ends_with(kRows))
        replace_rows(stem_of(name, kRows), stored);
      else if (name.find(".lora_") != name.npos)
        fail(ErrorKind::Unsupported,
             "{}: {} is not the adapter of a linear layer or of an embedding; expected lora_A, "
             "lora_B and lora_magnitude_vector, or lora_embedding_A and lora_embedding_B",
             path_, stored.name);
      else
        replace(name, stored);
    }
    for (auto& [name, tensors] : tables) {
      if (const auto at = found.find(name); at != found.end())
        tensors.magnitude = at->second.magnitude;
      found.erase(name);
      add_table(name, tensors);
    }
    for (auto& [name, tensors] : found) add(name, tensors);
    divide_tied();
    if (adapter_.layers.empty() && !adapter_.changes_weights())
      fail(ErrorKind::BadFile, "{}: has no adapters; expected tensors named {}MODULE.lora_A.weight",
           path_, kPeftPrefix);
    // PEFT lists several names of heads, of which a model has one.
    if (!config_.saved().empty() && adapter_.replaced.empty())
      fail(ErrorKind::BadFile, "{}: has no tensor of {}, which {} lists in modules_to_save", path_,
           fmt::join(config_.saved(), ", "), config_.path());
    return std::move(adapter_);
  }

 private:
  // GGUF has one architecture for BERT and RoBERTa. A model of such a file is a BERT here, and the
  // names of the tensors tell whose adapter it is.
  bool is_of_roberta() const {
    const std::vector<StoredTensor>& all = file_->stored();
    return family_ == &bert && std::any_of(all.begin(), all.end(), [](const StoredTensor& stored) {
             return stored.name.starts_with(std::string(kPeftPrefix) + roberta.prefix);
           });
  }
  std::string module_of_base(const StoredTensor& stored) const {
    const std::string_view prefix = kPeftPrefix;
    if (!stored.name.starts_with(prefix))
      fail(ErrorKind::BadFile, "{}: unknown tensor {}; expected names that begin with {}", path_,
           stored.name, prefix);
    return stored.name.substr(prefix.size());
  }

  // Finds an entry by its name in the file, with or without the family's prefix, or as a part of a
  // model that reads images.
  template <class Map>
  auto find(Map& map, const std::string& name) const {
    const std::string prefix = family_->prefix;
    auto at = map.find(name);
    if (at == map.end()) at = map.find(prefix + name);
    if (at == map.end() && !prefix.empty() && name.starts_with(prefix))
      at = map.find(name.substr(prefix.size()));
    for (const std::string_view decoder : kDecoders)
      if (at == map.end() && name.starts_with(decoder))
        at = map.find("model." + name.substr(decoder.size()));
    return at;
  }

  void add(const std::string& name, StoredModule& tensors) {
    const auto at = find(modules_, name);
    const auto parameter = find(parameters_, name);
    if (at == modules_.end() && parameter == parameters_.end())
      fail(ErrorKind::BadFile,
           "{}: adapts {}, which the base does not have or fovea cannot adapt; expected linear "
           "layers of the base's stacks",
           path_, name);
    if (tensors.down == nullptr || tensors.up == nullptr ||
        (tensors.magnitude != nullptr) != config_.dora())
      fail(ErrorKind::BadFile, "{}: the tensors of {} are incomplete; expected lora_A, lora_B{}",
           path_, name, config_.dora() ? " and lora_magnitude_vector (use_dora)" : "");
    if (parameter != parameters_.end()) {
      tensors.rank = config_.rank_of(parameter->second.name);
      tensors.scale = config_.scale_of(parameter->second.name);
      return read_parameter({path_, *file_}, tensors, parameter->second, model_, adapter_);
    }
    // PEFT adapts a matrix of a module as a module or as a parameter (target_parameters).
    const std::string parameter_name = name + ".weight";
    const bool as_parameter = !config_.targets(name) && !at->second.transposed &&
                              config_.targets_parameter(parameter_name);
    const bool as_tied =
        config_.ensures_tying() && at->second.tensor.parts[0] + ".weight" == kHeadMatrix;
    if (!as_parameter && !as_tied) expect_target(name);
    tensors.rank = config_.rank_of(as_parameter ? parameter_name : name);
    tensors.scale = config_.scale_of(as_parameter ? parameter_name : name);
    read_module({path_, *file_}, tensors, at->second, adapter_);
  }

  void expect_target(const std::string& name) const {
    if (!config_.targets(name))
      fail(ErrorKind::BadFile, "{}: adapts {}, but {} does not; expected the same modules", path_,
           name, config_.path());
  }

  // Returns the parameter that is the table of an embedding: [V, C].
  const std::string& table_of(const std::string& module, const char* what) const {
    const auto at = find(tensors_, module + ".weight");
    if (at == tensors_.end() || at->second.parts.size() != 1 || at->second.stored != Stored::plain)
      fail(ErrorKind::BadFile, "{}: has {} of {}, which the base does not have; expected {}", path_,
           what, module, "an embedding of the base");
    return at->second.parts[0];
  }

  // Reads the adapter of an embedding: A [rank, V], B [C, rank].
  void add_table(const std::string& name, const StoredModule& tensors) {
    expect_target(name);
    const std::string& table = table_of(name, "an adapter");
    if (tensors.down == nullptr || tensors.up == nullptr)
      fail(ErrorKind::BadFile,
           "{}: the tensors of {} are incomplete; expected lora_embedding_A and lora_embedding_B",
           path_, name);
    if (tensors.magnitude != nullptr)
      fail(ErrorKind::Unsupported, "{}: {} is an embedding with DoRA; expected one without", path_,
           name);
    const Shape& shape = own_parameters_.at(table)->shape;
    const int64_t rank = config_.rank_of(name);
    const AdapterFile file{path_, *file_};
    adapter_.changes[table] = {
        transpose_of(read_adapter_tensor(file, *tensors.down, {shape[1], rank})),
        transpose_of(read_adapter_tensor(file, *tensors.up, {rank, shape[0]})),
        {},
        config_.scale_of(name)};
  }

  // Reads rows of an embedding that replace those of the base (trainable_token_indices).
  void replace_rows(const std::string& module, const StoredTensor& stored) {
    const std::string& table = table_of(module, "rows");
    const std::vector<int64_t> ids = config_.trained_tokens(module);
    const Parameter& parameter = *own_parameters_.at(table);
    const int64_t width = parameter.shape[1];
    const Tensor rows =
        read_adapter_tensor({path_, *file_}, stored, {static_cast<int64_t>(ids.size()), width});
    Tensor& value = adapter_.replaced[table] = copy(floats_of(parameter));
    for (size_t i = 0; i < ids.size(); ++i) {
      if (ids[i] >= parameter.shape[0])
        fail(ErrorKind::BadFile, "{}: trainable_token_indices has {}; expected ids below {}",
             config_.path(), ids[i], parameter.shape[0]);
      std::copy_n(rows.data_as<float>() + static_cast<int64_t>(i) * width, width,
                  value.data_as<float>() + ids[i] * width);
    }
    replaces_rows_ = true;
  }

  // Reads a tensor of modules_to_save, or the base's matrix under an adapter of the embedding or of
  // the head, which PEFT stores too.
  void replace(const std::string& name, const StoredTensor& stored) {
    const bool below = name.ends_with(kBaseLayer);
    const std::string module = below ? stem_of(name, kBaseLayer) : name.substr(0, name.rfind('.'));
    const auto at = find(tensors_, below ? module + ".weight" : name);
    const bool known = at != tensors_.end();
    const bool of_base = known && !config_.saves(module) &&
                         (at->second.parts[0] == kTokenTable || at->second.parts[0] == kHeadMatrix);
    if (!known || !(below ? of_base : of_base || config_.saves(module)))
      fail(ErrorKind::BadFile,
           "{}: unknown tensor {}; expected adapters, and tensors of the base that {} lists in "
           "modules_to_save",
           path_, stored.name, config_.path());
    std::vector<Shape> shapes;
    for (const std::string& part : at->second.parts)
      shapes.push_back(own_parameters_.at(part)->shape);
    const Tensor value =
        read_adapter_tensor({path_, *file_}, stored, shape_in_file(at->second, shapes));
    const auto values = from_file(at->second, value, shapes);
    if (of_base && equal_values(values[0], floats_of(*own_parameters_.at(at->second.parts[0]))))
      return;
    for (size_t i = 0; i < values.size(); ++i) adapter_.replaced[at->second.parts[i]] = values[i];
    if (of_base && tied_)
      for (const char* matrix : {kTokenTable, kHeadMatrix})
        adapter_.replaced.emplace(matrix, values[0]);
  }

  bool touches(const char* parameter) const {
    return adapter_.changes.contains(parameter) || adapter_.replaced.contains(parameter);
  }

  // In a base whose embedding is also the head, decides which of the two the adapter changes: those
  // that the file names, except that new rows change both, as everything does with
  // ensure_weight_tying.
  void divide_tied() {
    if (!tied_ || !(touches(kTokenTable) || touches(kHeadMatrix))) return;
    if (model_.spec.encoder && model_.spec.decoder)
      fail(ErrorKind::Unsupported,
           "{}: changes a matrix that both stacks and the head share; expected adapters of other "
           "modules",
           path_);
    adapter_.unties = touches(kHeadMatrix) || !(config_.ensures_tying() || replaces_rows_);
    if (adapter_.unties && model_.spec.head.tied)
      fail(ErrorKind::Unsupported,
           "{}: changes only one of the embedding and the head, which are one matrix in models of "
           "type {}; expected adapters of other modules",
           path_, family_->model_type);
  }

  PeftConfig config_;
  std::string path_;
  const Family* family_;
  bool tied_;
  std::unique_ptr<Transformer> own_;  // the base, in which each module has a matrix of its own
  Transformer& model_;
  std::optional<SafeTensors> file_;
  std::map<std::string, AdapterModule> modules_;
  std::map<std::string, FileTensor> parameters_, tensors_;
  std::map<std::string, const Parameter*> own_parameters_;
  bool replaces_rows_ = false;
  Adapter adapter_;
};

}  // namespace

Adapter read_peft_adapter(const std::string& folder, const Family& family, Transformer& model) {
  return PeftReader(folder, family, model).read();
}

}  // namespace fovea::model
