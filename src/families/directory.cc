#include "families/directory.h"

#include <algorithm>
#include <cstring>
#include <set>

#include "base/error.h"
#include "base/files.h"
#include "base/json.h"
#include "checkpoint/safetensors.h"
#include "families/gguf.h"

namespace fovea {
namespace {

std::vector<int32_t> ids_under(const nlohmann::json& json, const char* key) {
  std::vector<int32_t> ids;
  const auto at = json.find(key);
  if (at == json.end()) return ids;
  for (const auto& id : at->is_array() ? *at : nlohmann::json::array({*at}))
    if (id.is_number_integer() && id >= 0 && id <= INT32_MAX) ids.push_back(id.get<int32_t>());
  return ids;
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

// Puts a file's tensors into a model, and remembers everything that does not fit.
class Loader {
 public:
  Loader(const TensorSource& file, const Family& family, Weights weights, std::string folder)
      : file_(file), family_(family), weights_(weights), folder_(std::move(folder)) {}

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
      if (stored == nullptr) {
        missing_.push_back(tensor.name);
        continue;
      }
      used_.insert(stored->name);
      const Shape expected = shape_in_file(tensor, shapes);
      if (stored->shape != expected) {
        misshapen_.push_back(fmt::format("{} is {}, expected {}", tensor.name,
                                         describe(stored->shape), describe(expected)));
        continue;
      }
      Tensor value = file_.tensor(stored->name);
      if (const int64_t bad = count_nonfinite(value); bad > 0)
        nonfinite_[stored->name] = fmt::format("{}: {} of {} elements of {} are not finite",
                                               folder_, bad, value.size(), stored->name);
      if (value.dtype() == DType::f16) value = widen_halves(value);
      if (value.dtype() == DType::i32 || value.dtype() == DType::i64) {
        fail(ErrorKind::Unsupported, "{}: {} is {}; expected fp32, bf16 or fp16", folder_,
             tensor.name, name_of(value.dtype()));
      }
      const auto values = from_file(tensor, value, shapes);
      for (size_t i = 0; i < parts.size(); ++i) {
        parts[i]->value =
            weights_ == Weights::owned || parts.size() > 1 ? copy(values[i]) : values[i];
      }
    }
  }

  // A copy of a tied weight.
  void pass_over(const std::string& name) { passed_over_ = name; }

  // One message for all that was wrong.
  void report(std::vector<std::string>& warnings) const {
    std::vector<std::string> unknown;
    for (const StoredTensor& stored : file_.stored()) {
      if (used_.contains(stored.name) || is_buffer(family_, stored.name)) continue;
      if (stored.name == passed_over_) continue;
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
           "{}: the tensors are not those of its config ({}); expected a {} checkpoint of its "
           "sizes",
           folder_, fmt::join(wrong, "; "), family_.model_type);
    }
    for (const auto& [name, warning] : nonfinite_) warnings.push_back(warning);
  }

  // Under its name, with or without the family's prefix, or as a norm was once called.
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
  // Whether the file has the names that transformers uses in memory, where they differ.
  bool uses_names_in_memory(Transformer& model) const {
    if (family_.names_in_memory.empty()) return false;
    const auto tensors = file_tensors(family_, model, true);
    return std::all_of(tensors.begin(), tensors.end(),
                       [&](const FileTensor& tensor) { return find(tensor.name) != nullptr; });
  }

  const TensorSource& file_;
  const Family& family_;
  Weights weights_;
  std::string folder_, passed_over_;
  std::set<std::string> used_;
  std::vector<std::string> missing_, misshapen_;
  std::map<std::string, std::string> nonfinite_;  // a warning for each such tensor
};

// A file may hold a head of its own although config.json says that it is the embedding: then the
// file is right. Returns the name under which such a head would lie.
std::string name_of_head(const Spec& spec, const Family& family) {
  Spec untied = spec;
  untied.head.tied = false;
  Transformer model(untied);
  for (const FileTensor& tensor : file_tensors(family, model))
    if (tensor.parts[0] == "head.output.weight") return tensor.name;
  return "";
}

bool is_another(const TensorSource& file, const std::string& head, const StoredTensor* table) {
  const StoredTensor* found = file.find(head);
  return found != nullptr && table != nullptr &&
         (found->bytes != table->bytes || std::memcmp(found->data, table->data, found->bytes) != 0);
}

}  // namespace

std::optional<int32_t> special_id(const Origin& origin, const char* key) {
  for (const nlohmann::json json : {origin.generation, origin.carried}) {
    if (!json.is_object()) continue;
    if (const auto ids = ids_under(json, key); !ids.empty()) return ids[0];
  }
  return std::nullopt;
}

ModelFiles load_model(const Family& family, const nlohmann::json& config, const std::string& name,
                      const TensorSource& file, Weights weights, const std::string& path) {
  ModelFiles files;
  Spec spec;
  Config reader(config, name);
  describe(reader, family, spec);
  files.origin = {&family, reader.carried(), {}};
  Loader loader(file, family, weights, path);
  if (spec.head.tied) {
    Transformer tied(spec);
    const std::string head = name_of_head(spec, family);
    const auto tensors = file_tensors(family, tied);
    if (is_another(file, head, loader.find(tensors.front().name))) {
      spec.head.tied = false;
      files.warnings.push_back(
          fmt::format("{}: config.json ties the head to the embedding, but the file has another "
                      "one; the file's is used",
                      path));
    } else {
      loader.pass_over(head);
    }
  }
  files.model = Transformer(spec);
  loader.load(files.model);
  loader.report(files.warnings);
  return files;
}

ModelFiles open_model_files(const std::string& path, Weights weights) {
  if (is_gguf(path)) return open_gguf_files(path, weights);
  if (!is_folder(path)) {
    refuse_pickle(path);
    fail(ErrorKind::BadFile,
         "{}: not a folder; expected a model's directory with config.json in it, or a .gguf file",
         path);
  }
  const std::string config_path = path + "/config.json";
  const nlohmann::json config = read_json(config_path);
  if (!config.is_object())
    fail(ErrorKind::BadFile, "{}: not an object; expected keys and values in braces", config_path);
  const Family& family = family_named(get_string(config, "model_type", config_path), config_path);
  ModelFiles files =
      load_model(family, config, config_path, SafeTensors::open_model(path), weights, path);
  if (const std::string generation = path + "/generation_config.json"; is_file(generation))
    files.origin.generation = read_json(generation);
  files.end_ids = end_ids(path, config);
  return files;
}

std::map<std::string, Tensor> checkpoint_tensors(Transformer& model, const Family& family) {
  std::map<std::string, Tensor> values, tensors;
  model.each([&](const std::string& name, Parameter& p) { values[name] = p.value; });
  for (const FileTensor& tensor : file_tensors(family, model)) {
    std::vector<Tensor> parts;
    for (const std::string& part : tensor.parts) parts.push_back(values.at(part));
    tensors[tensor.name] = to_file(tensor, parts);
  }
  return tensors;
}

const Family& family_to_save(const Spec& spec, const Origin& origin) {
  const bool same = origin.family != nullptr && can_express(*origin.family, spec);
  return same ? *origin.family : family_for(spec);
}

std::string config_json(const Transformer& model, const Origin& origin,
                        std::optional<int32_t> end_id) {
  Config config;
  Spec spec = model.spec;
  const Family& family = family_to_save(spec, origin);
  describe(config, family, spec);
  config.write("dtype", "float32");
  nlohmann::ordered_json written = config.written();
  if (&family == origin.family) {
    for (const auto& [key, value] : origin.carried.items())
      if (key != "torch_dtype" && !written.contains(key)) written[key] = value;
    return pretty(written);
  }
  // Said even where there is none: transformers' own defaults are those of the original vocabulary.
  const nlohmann::ordered_json end =
      end_id ? nlohmann::ordered_json(*end_id) : nlohmann::ordered_json();
  written["bos_token_id"] = end;
  written["eos_token_id"] = end;
  return pretty(written);
}

std::string generation_config_json(const Origin& origin, std::optional<int32_t> end_id) {
  if (!origin.generation.is_null()) return pretty(origin.generation);
  nlohmann::ordered_json json;
  json["_from_model_config"] = false;
  if (end_id) json["bos_token_id"] = json["eos_token_id"] = *end_id;
  json["do_sample"] = true;
  return pretty(json);
}

void save_model_files(const std::string& folder, Transformer& model, std::optional<int32_t> end_id,
                      const Origin& origin) {
  const Family& family = family_to_save(model.spec, origin);
  write_safetensors(folder + "/model.safetensors", checkpoint_tensors(model, family));
  write_file_atomically(folder + "/config.json", config_json(model, origin, end_id));
  write_file_atomically(folder + "/generation_config.json", generation_config_json(origin, end_id));
}

}  // namespace fovea
