#include <algorithm>

#include "base/error.h"
#include "base/files.h"
#include "base/gguf.h"
#include "checkpoint/safetensors.h"
#include "families/adapters.h"
#include "families/fused_experts.h"
#include "families/gguf_adapter.h"
#include "families/registry.h"

namespace fovea {
namespace {

constexpr std::string_view kPeftDown = ".lora_A.weight", kPeftUp = ".lora_B.weight",
                           kMagnitude = ".lora_magnitude_vector";

std::string stem_of(const std::string& name, std::string_view ending) {
  return name.substr(0, name.size() - ending.size());
}

// Reads the folder of an adapter.
class PeftReader {
 public:
  PeftReader(const std::string& folder, const Family& family, Transformer& model)
      : config_(folder), path_(folder + "/" + kAdapterTensors), family_(&family), model_(model) {
    if (!is_file(path_) && is_file(folder + "/adapter_model.bin"))
      refuse_pickle(folder + "/adapter_model.bin");
    file_.emplace(path_);
    adapter_.folder = folder;
    adapter_.dropout = config_.dropout();
    if (is_of_roberta()) family_ = &roberta;
    for (const ModuleNames names : {ModuleNames::files, ModuleNames::memory})
      for (AdapterModule& module : adapter_modules(*family_, model, names)) {
        std::string name = module.name;
        modules_.emplace(std::move(name), std::move(module));
      }
    parameters_ = targeted_parameters(*family_, model, config_);
  }

  Adapter read() {
    std::map<std::string, StoredModule> found;
    for (const StoredTensor& stored : file_->stored()) {
      const std::string name = module_of_base(stored);
      if (name.ends_with(kPeftDown))
        found[stem_of(name, kPeftDown)].down = &stored;
      else if (name.ends_with(kPeftUp))
        found[stem_of(name, kPeftUp)].up = &stored;
      else if (name.ends_with(kMagnitude))
        found[stem_of(name, kMagnitude)].magnitude = &stored;
      else if (name.find(".lora_") != name.npos)
        fail(ErrorKind::Unsupported,
             "{}: {} is not the adapter of a linear layer; expected lora_A, lora_B and "
             "lora_magnitude_vector",
             path_, stored.name);
      else
        replace(name, stored);
    }
    for (auto& [name, tensors] : found) add(name, tensors);
    if (adapter_.layers.empty())
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

  // Finds an entry by its name in the file, with or without the family's prefix.
  template <class Map>
  auto find(Map& map, const std::string& name) const {
    const std::string prefix = family_->prefix;
    auto at = map.find(name);
    if (at == map.end()) at = map.find(prefix + name);
    if (at == map.end() && !prefix.empty() && name.starts_with(prefix))
      at = map.find(name.substr(prefix.size()));
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
    if (!config_.targets(name))
      fail(ErrorKind::BadFile, "{}: adapts {}, but {} does not; expected the same modules", path_,
           name, config_.path());
    tensors.rank = config_.rank_of(name);
    tensors.scale = config_.scale_of(name);
    read_module({path_, *file_}, tensors, at->second, adapter_);
  }

  // Reads a tensor of modules_to_save.
  void replace(const std::string& name, const StoredTensor& stored) {
    const std::string module = name.substr(0, name.rfind('.'));
    std::map<std::string, FileTensor> known;
    for (const bool in_memory : {false, true})
      for (FileTensor& tensor : file_tensors(*family_, model_, in_memory))
        known.emplace(tensor.name, std::move(tensor));
    const auto at = find(known, name);
    if (at == known.end() || !config_.saves(module))
      fail(ErrorKind::BadFile,
           "{}: unknown tensor {}; expected adapters, and tensors of the base that {} lists in "
           "modules_to_save",
           path_, stored.name, config_.path());
    std::map<std::string, const Parameter*> parameters;
    for (const auto& [ours, parameter] : parameters_of(model_)) parameters[ours] = parameter;
    if (model_.spec.head.tied && parameters.at(at->second.parts[0]) == &model_.token_embedding)
      fail(ErrorKind::Unsupported,
           "{}: {} replaces a matrix that is both the embedding and the head; expected adapters of "
           "other modules",
           path_, stored.name);
    std::vector<Shape> shapes;
    for (const std::string& part : at->second.parts) shapes.push_back(parameters.at(part)->shape);
    const Tensor value =
        read_adapter_tensor({path_, *file_}, stored, shape_in_file(at->second, shapes));
    const auto values = from_file(at->second, value, shapes);
    for (size_t i = 0; i < values.size(); ++i) adapter_.replaced[at->second.parts[i]] = values[i];
  }

  PeftConfig config_;
  std::string path_;
  const Family* family_;
  Transformer& model_;
  std::optional<SafeTensors> file_;
  std::map<std::string, AdapterModule> modules_;
  std::map<std::string, FileTensor> parameters_;
  Adapter adapter_;
};

}  // namespace

Adapter read_adapter(const std::string& path, const Family& family, Transformer& model) {
  return is_gguf(path) ? read_gguf_adapter(path, family, model)
                       : PeftReader(path, family, model).read();
}

}  // namespace fovea
