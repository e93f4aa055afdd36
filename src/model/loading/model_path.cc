#include "loading/model_path.h"

#include <filesystem>

#include "base/error.h"
#include "base/files.h"
#include "fovea/model/hub.h"
#include "hub/name.h"
#include "safetensors/safetensors.h"

namespace fovea::model {
namespace {

bool path_exists(const std::string& path) {
  std::error_code unreadable;
  return std::filesystem::exists(path, unreadable);
}

// Says how to get a model of the Hub, whose oldest models have names without a user.
std::string hub_hint(const std::string& path) {
  const bool old = is_repository(path) && path.find('/') == path.npos && !path.ends_with(".gguf");
  const auto name = missing_model(old ? "hf:" + path : path);
  if (!name) return "";
  return fmt::format(" (to fetch it from the Hugging Face Hub: fovea pull {})", path);
}

}  // namespace

void require_model(const std::string& path) {
  if (!path_exists(path)) refuse_path(path);
}

void refuse_path(const std::string& path) {
  refuse_pickle(path);
  const char* const wrong = is_folder(path)     ? "has no config.json"
                            : path_exists(path) ? "not a directory"
                                                : "is missing";
  fail(ErrorKind::BadFile,
       "{}: {}; expected a model's directory with config.json in it, or a .gguf file{}", path,
       wrong, path_exists(path) ? "" : hub_hint(path));
}

}  // namespace fovea::model
