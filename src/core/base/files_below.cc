#include "base/files_below.h"

#include <algorithm>

#include "base/error.h"
#include "base/folder_links.h"

namespace fovea {
namespace {

namespace fs = std::filesystem;

constexpr int kDeepest = 64;  // levels of subfolders

[[noreturn]] void refuse(const std::string& folder, const std::error_code& error) {
  fail(ErrorKind::BadFile, "{}: cannot be listed ({}); expected a readable folder", folder,
       error.message());
}

// Returns whether the final target of a link is below `root`, a path without links.
bool stays_below(const fs::path& link, const fs::path& root) {
  std::error_code error;
  const fs::path target = fs::canonical(link, error);
  return !error && is_below(target, root);
}

}  // namespace

FilesBelow files_below(const std::string& folder) {
  std::error_code error;
  const fs::path root = root_of_links(folder);
  FilesBelow found;
  for (fs::recursive_directory_iterator entry(folder, error), end; !error && entry != end;
       entry.increment(error)) {
    if (entry.depth() > kDeepest)
      fail(ErrorKind::BadFile, "{}: subfolders are more than {} levels deep; expected at most {}",
           folder, kDeepest, kDeepest);
    const fs::path& path = entry->path();
    std::error_code lost;  // files that disappear during the listing are skipped
    if (path.filename().string().starts_with('.')) {
      entry.disable_recursion_pending();
    } else if (entry->is_symlink(lost) && !stays_below(path, root)) {
      found.links_out.push_back(path);
    } else if (entry->is_regular_file(lost)) {
      found.files.push_back(path);
    }
  }
  if (error) refuse(folder, error);
  std::sort(found.files.begin(), found.files.end());
  std::sort(found.links_out.begin(), found.links_out.end());
  return found;
}

}  // namespace fovea
