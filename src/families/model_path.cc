#include "families/refuse_path.h"

#include <algorithm>
#include <filesystem>

#include "base/error.h"
#include "base/files.h"
#include "checkpoint/safetensors.h"

namespace fovea {
namespace {

// Says how to get the model if `path` looks like "name" or "owner/name" on the Hugging Face Hub.
std::string hub_hint(const std::string& path) {
  const auto slashes = std::count(path.begin(), path.end(), '/');
  const bool name = !path.empty() && path[0] != '.' && path[0] != '/' && path.back() != '/';
  if (!name || slashes > 1 || is_folder(path.substr(0, path.find('/')))) return "";
  return fmt::format(" (a model of the Hugging Face Hub: hf download {} --local-dir DIR)", path);
}

}  // namespace

void refuse_path(const std::string& path) {
  refuse_pickle(path);
  std::error_code unreadable;
  const bool exists = std::filesystem::exists(path, unreadable);
  fail(ErrorKind::BadFile,
       "{}: {}; expected a model's directory with config.json in it, or a .gguf file{}", path,
       exists ? "not a directory" : "is missing", exists ? "" : hub_hint(path));
}

}  // namespace fovea
