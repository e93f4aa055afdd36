#include "base/folder_links.h"

#include <algorithm>
#include <filesystem>

#include "base/error.h"

namespace fovea {
namespace {

namespace fs = std::filesystem;

void check_link(const fs::path& link, const fs::path& root) {
  std::error_code dangling;
  const fs::path target = fs::canonical(link, dangling);
  if (dangling) return;  // such a file is missing
  if (is_below(target, root)) return;
  fail(ErrorKind::BadFile,
       "{}: is a symbolic link out of the model's folder; expected a file in {}", link.string(),
       root.string());
}

}  // namespace

fs::path root_of_links(const fs::path& folder) {
  std::error_code missing;
  const fs::path own = fs::canonical(folder.empty() ? "." : folder, missing);
  for (fs::path path = own; path.has_relative_path(); path = path.parent_path()) {
    const fs::path cache = path.parent_path().parent_path();
    const std::string name = cache.filename().string();
    if (path.parent_path().filename() == "snapshots" &&
        (name.starts_with("models--") || name.starts_with("datasets--")))
      return cache;
  }
  return own;
}

bool is_below(const fs::path& path, const fs::path& folder) {
  return std::mismatch(folder.begin(), folder.end(), path.begin(), path.end()).first ==
         folder.end();
}

void refuse_links_out(const std::string& folder) {
  constexpr int kDeepest = 1;  // subfolders of modules, such as 1_Pooling
  const fs::path root = root_of_links(folder);
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
  if (fs::is_symlink(path, missing)) check_link(path, root_of_links(path.parent_path()));
}

}  // namespace fovea
