#include "base/folder_links.h"

#include <algorithm>
#include <filesystem>

#include "base/error.h"

namespace fovea {
namespace {

namespace fs = std::filesystem;

// Returns the folder in which the targets of links must be; empty if `folder` does not exist.
fs::path root_of(const fs::path& folder) {
  std::error_code missing;
  const fs::path own = fs::canonical(folder.empty() ? "." : folder, missing);
  const fs::path cache = own.parent_path().parent_path();
  const bool cached = own.parent_path().filename() == "snapshots" &&
                      cache.filename().string().starts_with("models--");
  return cached ? cache : own;
}

void check_link(const fs::path& link, const fs::path& root) {
  std::error_code dangling;
  const fs::path target = fs::canonical(link, dangling);
  if (dangling) return;  // such a file is missing
  if (std::mismatch(root.begin(), root.end(), target.begin(), target.end()).first == root.end())
    return;
  fail(ErrorKind::BadFile,
       "{}: is a symbolic link out of the model's folder; expected a file in {}", link.string(),
       root.string());
}

}  // namespace

void refuse_links_out(const std::string& folder) {
  constexpr int kDeepest = 1;  // subfolders of modules, such as 1_Pooling
  const fs::path root = root_of(folder);
  std::error_code error;
  for (fs::recursive_directory_iterator entry(folder, error), end; !error && entry != end;
       entry.increment(error)) {
    if (entry.depth() >= kDeepest) entry.disable_recursion_pending();
    std::error_code lost;
    if (entry->is_symlink(lost)) check_link(entry->path(), root);
  }
}

void refuse_link_out(const std::string& file) {
  std::error_code missing;
  const fs::path path(file);
  if (fs::is_symlink(path, missing)) check_link(path, root_of(path.parent_path()));
}

}  // namespace fovea
