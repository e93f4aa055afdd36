#include "families/directory.h"

#include <algorithm>
#include <cstring>
#include <set>

#include "base/error.h"
#include "base/files.h"
#include "base/json.h"
#include "checkpoint/safetensors.h"

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
  Loader(const SafeTensors& file, const Family& family, Weights weights, std::string folder)
      : file_(file), family_(family), weights_(weights), folder_(std::move(folder)) {}

  void load(Transformer& model) {
    std::map<std::string, Parameter*> parameters;
    model.each([&](const std::string& name, Parameter& p) { parameters[name] = &p; });
    for (const FileTensor& tensor : file_tensors(family_.names, model)) {
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

  // One message for all that was wrong.
  void report(std::vector<std::string>& warnings, bool tied) const {
    std::vector<std::string> unknown;
    for (const StoredTensor& stored : file_.stored()) {
      if (used_.contains(stored.name) || is_buffer(family_, stored.name)) continue;
      if (tied && stored.name == "lm_head.weight") continue;
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
           "{}: the tensors are not those of config.json ({}); expected a {} checkpoint of its "
           "sizes",
           folder_, fmt::join(wrong, "; "), family_.model_type);
    }
    for (const std::string& name : used_) {
      const Tensor value = file_.tensor(name);
      if (const int64_t bad = count_nonfinite(value); bad > 0) {
        warnings.push_back(fmt::format("{}: {} of {} elements of {} are not finite", folder_, bad,
                                       value.size(), name));
      }
    }
  }

  const StoredTensor* find(const std::string& name) const {
    if (const auto* stored = file_.find(name)) return stored;
    const std::string prefix = family_.prefix;
    return !prefix.empty() && name.starts_with(prefix) ? file_.find(name.substr(prefix.size()))
                                                       : nullptr;
  }

 private:
  const SafeTensors& file_;
  const Family& family_;
  Weights weights_;
  std::string folder_;
  std::set<std::string> used_;
  std::vector<std::string> missing_, misshapen_;
};

// A file may hold a head of its own although config.json says that it is the embedding: then the
// file is right.
bool has_other_head(const SafeTensors& file, const Loader& loader, const std::string& embedding) {
  const StoredTensor *head = file.find("lm_head.weight"), *table = loader.find(embedding);
  return head != nullptr && table != nullptr &&
         (head->bytes != table->bytes || std::memcmp(head->data, table->data, head->bytes) != 0);
}

}  // namespace

ModelFiles open_model_files(const std::string& folder, Weights weights) {
  if (!is_folder(folder)) {
    refuse_pickle(folder);
    fail(ErrorKind::BadFile,
         "{}: not a folder; expected a model's directory with config.json in it", folder);
  }
  const std::string path = folder + "/config.json";
  const nlohmann::json config = read_json(path);
  if (!config.is_object())
    fail(ErrorKind::BadFile, "{}: not an object; expected keys and values in braces", path);
  ModelFiles files;
  files.family = &family_named(get_string(config, "model_type", path), path);
  Spec spec;
  Config reader(config, path);
  files.family->config(reader, spec);
  try {
    spec = validated(spec);
  } catch (const Error& error) {
    fail(ErrorKind::BadFile, "{}: {}", path, error.what());
  }

  const SafeTensors file = SafeTensors::open_model(folder);
  Loader loader(file, *files.family, weights, folder);
  if (spec.tied_head) {
    Transformer tied(spec);
    const auto tensors = file_tensors(files.family->names, tied);
    if (has_other_head(file, loader, tensors.front().name)) {
      spec.tied_head = false;
      files.warnings.push_back(
          fmt::format("{}: config.json ties the head to the embedding, but the file has another "
                      "one; the file's is used",
                      folder));
    }
  }
  files.model = Transformer(spec);
  loader.load(files.model);
  loader.report(files.warnings, spec.tied_head);
  files.end_ids = end_ids(folder, config);
  return files;
}

std::map<std::string, Tensor> checkpoint_tensors(Transformer& model, const Family& family) {
  std::map<std::string, Tensor> values, tensors;
  model.each([&](const std::string& name, Parameter& p) { values[name] = p.value; });
  for (const FileTensor& tensor : file_tensors(family.names, model)) {
    std::vector<Tensor> parts;
    for (const std::string& part : tensor.parts) parts.push_back(values.at(part));
    tensors[tensor.name] = to_file(tensor, parts);
  }
  return tensors;
}

std::string config_json(const Transformer& model, const Family& family,
                        std::optional<int32_t> end_id) {
  Config config;
  config.write("architectures", {family.architecture});
  config.write("model_type", family.model_type);
  Spec spec = model.spec;
  family.config(config, spec);
  config.write("dtype", "float32");
  // Said even where there is none: transformers' own defaults are those of the original vocabulary.
  const nlohmann::ordered_json end =
      end_id ? nlohmann::ordered_json(*end_id) : nlohmann::ordered_json();
  config.write("bos_token_id", end);
  config.write("eos_token_id", end);
  return pretty(config.written());
}

std::string generation_config_json(std::optional<int32_t> end_id) {
  nlohmann::ordered_json json;
  json["_from_model_config"] = false;
  if (end_id) json["bos_token_id"] = json["eos_token_id"] = *end_id;
  json["do_sample"] = true;
  return pretty(json);
}

void save_model_files(const std::string& folder, Transformer& model,
                      std::optional<int32_t> end_id) {
  const Family& family = family_for(model.spec);
  write_safetensors(folder + "/model.safetensors", checkpoint_tensors(model, family));
  write_file_atomically(folder + "/config.json", config_json(model, family, end_id));
  write_file_atomically(folder + "/generation_config.json", generation_config_json(end_id));
}

}  // namespace fovea
