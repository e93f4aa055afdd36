#include "checkpoint/module_files.h"

#include "base/error.h"
#include "base/files.h"
#include "base/hash.h"
#include "base/json.h"
#include "fovea/core/excerpt.h"
#include "safetensors/safetensors.h"
#include "safetensors/torch_file.h"

namespace fovea::model {
namespace {

using Json = nlohmann::json;

// Returns the module's folder; throws BadFile if its path leads out of the model's folder.
std::string folder_inside(const std::string& folder, const std::string& path,
                          const std::string& file) {
  if (path.empty()) return folder;
  if (path.find('\0') != std::string::npos)
    fail(ErrorKind::BadFile, "{}: path \"{}\" contains a NUL byte; expected a folder's name", file,
         path);
  if (path.front() == '/' || path == ".." || path.starts_with("../") ||
      path.find("/..") != std::string::npos)
    fail(ErrorKind::BadFile, "{}: path \"{}\" leads out of the folder; expected a path inside it",
         file, excerpt(path));
  return folder + "/" + path;
}

// Returns the last component of a module's type.
std::string kind_of(const std::string& type) { return type.substr(type.rfind('.') + 1); }

}  // namespace

std::vector<ListedModule> list_modules(const std::string& folder) {
  const std::string file = folder + "/modules.json";
  const Json json = read_json(file);
  if (!json.is_array() || json.empty())
    fail(ErrorKind::BadFile, "{}: {}; expected a list of modules", file, brief(json));
  std::vector<ListedModule> modules;
  for (const Json& entry : json) {
    if (!entry.is_object())
      fail(ErrorKind::BadFile, "{}: {}; expected an object for each module", file, brief(entry));
    const std::string type = get_string(entry, "type", file);
    modules.push_back(
        {kind_of(type), folder_inside(folder, get_string(entry, "path", file), file)});
  }
  return modules;
}

Router read_router(const std::string& folder) {
  const std::string official = folder + "/router_config.json";
  const std::string file = is_file(official) ? official : folder + "/config.json";
  const Json json = read_json(file);
  const auto object = [&](const char* key) -> const Json& {
    if (!json.is_object() || !json.contains(key) || !json[key].is_object())
      fail(ErrorKind::BadFile, "{}: {} is missing; expected an object", file, key);
    return json[key];
  };
  const Json &types = object("types"), &structure = object("structure");
  Router router;
  for (const auto& [route, names] : structure.items()) {
    std::vector<ListedModule>& modules = router[route];
    for (const Json& name : names) {
      if (!name.is_string() || !types.contains(name.get<std::string>()))
        fail(ErrorKind::BadFile, "{}: route {} has {}; expected a name in types", file,
             excerpt(route, 40), brief(name));
      const auto id = name.get<std::string>();
      modules.push_back({kind_of(get_string(types, id, file)), folder_inside(folder, id, file)});
    }
  }
  return router;
}

bool is_original_colbert(const std::string& folder) {
  const std::string file = folder + "/config.json";
  if (!is_file(file)) return false;
  const Json config = read_json(file);
  const auto names = config.find("architectures");
  return config.is_object() && names != config.end() && names->is_array() && !names->empty() &&
         names->front() == "HF_ColBERT";
}

bool is_settings_file(const std::string& name) {
  return name.starts_with("sentence_") && name.ends_with("_config.json");
}

std::vector<std::string> pooling_modes(const Json& config, const std::string& file) {
  std::vector<std::string> modes;
  if (const auto named = config.find("pooling_mode"); named != config.end()) {
    for (const Json& name : named->is_array() ? *named : Json::array({*named})) {
      if (!name.is_string())
        fail(ErrorKind::BadFile, "{}: pooling_mode is {}; expected names", file, brief(*named));
      modes.push_back(name.get<std::string>());
    }
  } else {
    for (const auto& [key, name] : kPoolingModeKeys)
      if (config.contains(key) && get_bool(config, key, file)) modes.emplace_back(name);
  }
  if (modes.empty()) modes.emplace_back("mean");
  return modes;
}

void write_module_list(const std::string& folder, const std::vector<std::string>& kinds) {
  Json list = Json::array();
  for (size_t i = 0; i < kinds.size(); ++i)
    list.push_back({{"idx", i},
                    {"name", std::to_string(i)},
                    {"path", i == 0 ? "" : fmt::format("{}_{}", i, kinds[i])},
                    {"type", "sentence_transformers.models." + kinds[i]}});
  write_file_atomically(folder + "/modules.json", pretty(list));
}

void write_pooling(const std::string& folder, const std::string& mode, int64_t width) {
  Json config = {{"word_embedding_dimension", width}};
  for (const auto& [key, name] : kPoolingModeKeys)  // the default of the mean is true
    if (name == mode || std::string_view(name) == "mean") config[key] = name == mode;
  make_directories(folder + "/1_Pooling");
  write_file_atomically(folder + "/1_Pooling/config.json", pretty(config));
}

namespace {

// Returns the file of a head; empty if the model has no such head.
std::string head_file(const std::string& folder, const std::string& name) {
  for (const char* ending : {".safetensors", ".pt"})
    if (std::string file = folder + "/" + name + ending; is_file(file)) return file;
  return {};
}

std::map<std::string, Tensor> head_tensors(const std::string& file) {
  if (file.ends_with(".pt")) return read_torch_file(file);
  const SafeTensors stored(file);
  std::map<std::string, Tensor> found;
  for (const StoredTensor& each : stored.stored()) found[each.name] = stored.tensor(each.name);
  return found;
}

Tensor head_floats(const Tensor& x) {
  return x.dtype() == DType::f16 ? widen_halves(x) : convert(x, DType::f32);
}

}  // namespace

bool has_token_head(const std::string& folder, const std::string& name) {
  return !head_file(folder, name).empty();
}

TokenHead read_token_head(const std::string& folder, const std::string& name, int64_t width,
                          int64_t outputs) {
  const std::string file = head_file(folder, name);
  const std::map<std::string, Tensor> tensors = head_tensors(file);
  const auto weight = tensors.find("weight"), bias = tensors.find("bias");
  const bool present = weight != tensors.end() && bias != tensors.end() && tensors.size() == 2;
  if (!present)
    fail(ErrorKind::BadFile, "{}: has {} tensors; expected weight and bias", file, tensors.size());
  const Shape &of_weight = weight->second.shape(), &of_bias = bias->second.shape();
  const bool fits = of_weight.size() == 2 && of_weight[0] > 0 && of_weight[1] == width &&
                    of_bias == Shape{of_weight[0]} && (outputs == 0 || of_weight[0] == outputs);
  if (!fits)
    fail(ErrorKind::BadFile, "{}: weight is {} and bias {}; expected [{}, {}] and one number each",
         file, describe(of_weight), describe(of_bias), outputs == 0 ? "N" : std::to_string(outputs),
         width);
  TokenHead head{head_floats(weight->second), head_floats(bias->second),
                 hash_bytes(MappedFile(file).bytes())};
  if (count_nonfinite(head.weight) + count_nonfinite(head.bias) > 0)
    fail(ErrorKind::BadFile, "{}: has numbers that are not finite; expected finite weights", file);
  return head;
}

void copy_token_heads(const std::string& from, const std::string& to, int64_t width) {
  for (const char* name : {kSparseHead, kTokensHead}) {
    const std::string file = head_file(from, name);
    if (file.empty()) continue;
    read_token_head(from, name, width);
    write_file_atomically(to + file.substr(from.size()), MappedFile(file).bytes());
  }
}

void copy_modules(const std::string& from, const std::string& to, int64_t width) {
  copy_token_heads(from, to, width);
  if (!has_modules(from)) {
    write_module_list(to, {"Transformer", "Pooling"});
    return write_pooling(to, "mean", width);
  }
  const auto copy_file = [](const std::string& source, const std::string& target) {
    write_file_atomically(target, MappedFile(source).bytes());
  };
  for (const char* name : {"modules.json", "config_sentence_transformers.json"})
    if (is_file(from + "/" + name)) copy_file(from + "/" + name, to + "/" + name);
  const std::vector<ListedModule> listed = list_modules(from);
  for (size_t i = 0; i < listed.size(); ++i) {
    const std::string target = to + listed[i].folder.substr(from.size());
    make_directories(target);
    if (!is_folder(listed[i].folder)) continue;  // Normalize has no folder
    for (const std::string& name : list_files(listed[i].folder))
      if (i > 0 || is_settings_file(name))
        copy_file(listed[i].folder + "/" + name, target + "/" + name);
  }
}

bool is_transformer(const ListedModule& module) {
  return module.kind == "Transformer" || module.kind == "MLMTransformer";
}

bool is_static(const std::string& folder) {
  return has_modules(folder) && list_modules(folder).front().kind == kStaticEmbedding;
}

bool has_modules(const std::string& folder) { return is_file(folder + "/modules.json"); }

std::string transformer_folder(const std::string& folder) {
  if (!has_modules(folder)) return folder;
  const ListedModule first = list_modules(folder).front();
  if (!is_transformer(first) && first.kind != kStaticEmbedding)
    fail(ErrorKind::Unsupported,
         "{}/modules.json: the first module is {}; expected Transformer or {}", folder,
         excerpt(first.kind), kStaticEmbedding);
  return first.folder;
}

}  // namespace fovea::model
