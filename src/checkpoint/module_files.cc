#include "checkpoint/module_files.h"

#include "base/error.h"
#include "base/files.h"
#include "base/json.h"
#include "fovea/excerpt.h"

namespace fovea {
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
    const size_t dot = type.rfind('.');
    modules.push_back({dot == std::string::npos ? type : type.substr(dot + 1),
                       folder_inside(folder, get_string(entry, "path", file), file)});
  }
  if (modules.front().kind != "Transformer" && modules.front().kind != kStaticEmbedding)
    fail(ErrorKind::Unsupported, "{}: the first module is {}; expected Transformer or {}", file,
         excerpt(modules.front().kind), kStaticEmbedding);
  return modules;
}

bool is_settings_file(const std::string& name) {
  return name.starts_with("sentence_") && name.ends_with("_config.json");
}

void copy_modules(const std::string& from, const std::string& to, int64_t width) {
  if (!has_modules(from)) {
    make_directories(to + "/1_Pooling");
    write_file_atomically(
        to + "/modules.json",
        pretty(Json::array({{{"idx", 0},
                             {"name", "0"},
                             {"path", ""},
                             {"type", "sentence_transformers.models.Transformer"}},
                            {{"idx", 1},
                             {"name", "1"},
                             {"path", "1_Pooling"},
                             {"type", "sentence_transformers.models.Pooling"}}})));
    const Json pooling = {{"word_embedding_dimension", width}, {"pooling_mode_mean_tokens", true}};
    return write_file_atomically(to + "/1_Pooling/config.json", pretty(pooling));
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

bool is_static(const std::string& folder) {
  return has_modules(folder) && list_modules(folder).front().kind == kStaticEmbedding;
}

bool has_modules(const std::string& folder) { return is_file(folder + "/modules.json"); }

std::string transformer_folder(const std::string& folder) {
  return has_modules(folder) ? list_modules(folder).front().folder : folder;
}

}  // namespace fovea
