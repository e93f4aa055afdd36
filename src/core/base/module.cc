#include "base/module.h"

#include <dlfcn.h>

#include <filesystem>

namespace fovea {
namespace {

namespace fs = std::filesystem;

// Returns the folder of the file that contains this code: the program, or the shared library.
fs::path own_folder() {
  Dl_info info = {};
  if (dladdr(reinterpret_cast<const void*>(&module_path), &info) == 0) return {};
  std::error_code error;
  return fs::canonical(info.dli_fname, error).parent_path();
}

}  // namespace

std::string program_folder() {
  std::error_code error;
  return fs::read_symlink("/proc/self/exe", error).parent_path().string();
}

std::string module_path(const std::string& name) {
  const fs::path program = program_folder();
  for (const fs::path& path :
       {program / name, program / ".." / FOVEA_LIBRARY_FOLDER / "fovea" / name,
        own_folder() / "fovea" / name}) {
    std::error_code error;
    if (path.is_absolute() && fs::exists(path, error)) return path.string();
  }
  return "";
}

}  // namespace fovea
