#include "loading/model_path.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include "base/error.h"
#include "base/files.h"
#include "safetensors/safetensors.h"

namespace fovea::model {
namespace {

bool exists(const std::string& path) {
  std::error_code unreadable;
  return std::filesystem::exists(path, unreadable);
}

// Returns whether a path looks like "name" or "owner/name" on the Hugging Face Hub.
bool is_hub_name(const std::string& path) {
  const auto slashes = std::count(path.begin(), path.end(), '/');
  const bool name = !path.empty() && path[0] != '.' && path[0] != '/' && path.back() != '/';
  return name && slashes <= 1 && path.find('\0') == path.npos &&
         !is_folder(path.substr(0, path.find('/')));
}

// Says how to get the model.
std::string hub_hint(const std::string& path) {
  if (!is_hub_name(path) || path.ends_with(".gguf")) return "";
  return fmt::format(" (a model of the Hugging Face Hub: hf download {} --local-dir DIR)", path);
}

std::string hub_cache() {
  const auto variable = [](const char* name, const char* below) -> std::string {
    const char* const value = std::getenv(name);
    return value == nullptr || *value == 0 ? "" : std::string(value) + below;
  };
  for (const auto& [name, below] : {std::pair("HF_HUB_CACHE", ""), std::pair("HF_HOME", "/hub"),
                                    std::pair("XDG_CACHE_HOME", "/huggingface/hub"),
                                    std::pair("HOME", "/.cache/huggingface/hub")})
    if (std::string found = variable(name, below); !found.empty()) return found;
  return "";
}

}  // namespace

// The cache has folders models--OWNER--NAME, in which refs/main contains the name of the folder in
// snapshots/ that holds the files of the main branch.
std::string find_model(const std::string& name) {
  if (exists(name) || !is_hub_name(name)) return name;
  std::string folder = name;
  if (const size_t slash = folder.find('/'); slash != folder.npos) folder.replace(slash, 1, "--");
  const std::string cached = hub_cache() + "/models--" + folder;
  const std::string main = cached + "/refs/main";
  if (!is_file(main)) return name;
  constexpr size_t kMostBytes = 256;  // of a commit's hash
  std::string commit = read_file(main, kMostBytes);
  commit.erase(commit.find_last_not_of(" \n\r") + 1);
  const std::string snapshot = cached + "/snapshots/" + commit;
  const bool plain = !commit.empty() && commit.find('/') == commit.npos && commit[0] != '.';
  return plain && is_folder(snapshot) ? snapshot : name;
}

void require_model(const std::string& path) {
  if (!exists(path)) refuse_path(path);
}

void refuse_path(const std::string& path) {
  refuse_pickle(path);
  const char* const wrong = is_folder(path) ? "has no config.json"
                            : exists(path)  ? "not a directory"
                                            : "is missing";
  fail(ErrorKind::BadFile,
       "{}: {}; expected a model's directory with config.json in it, or a .gguf file{}", path,
       wrong, exists(path) ? "" : hub_hint(path));
}

}  // namespace fovea::model
