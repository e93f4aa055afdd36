#include "search/text_files.h"

#include <filesystem>

#include "base/error.h"
#include "base/files.h"
#include "text/utf8.h"

namespace fovea {
namespace {

constexpr size_t kLargest = size_t{64} << 20;  // of a file; larger ones are data, not prose
constexpr int kDeepest = 64;                   // folders in folders

bool is_text(const std::string& path) {
  constexpr size_t kLooked = 8192;  // bytes: what git looks at
  const MappedFile file(path);
  return file.size() <= kLargest &&
         file.bytes().substr(0, kLooked).find('\0') == std::string_view::npos;
}

void collect(const std::string& folder, const std::string& below, int depth,
             std::vector<std::string>& files, std::vector<std::string>& skipped) {
  if (depth > kDeepest)
    fail(ErrorKind::BadFile, "{}: more than {} folders deep; expected fewer", folder, kDeepest);
  for (const std::string& name : list_files(folder)) {
    if (name.starts_with('.')) continue;
    (is_text(folder + "/" + name) ? files : skipped).push_back(below + name);
  }
  for (const std::string& name : list_folders(folder)) {
    // Links to folders could lead in circles.
    if (name.starts_with('.') || std::filesystem::is_symlink(folder + "/" + name)) continue;
    collect(folder + "/" + name, below + name + "/", depth + 1, files, skipped);
  }
}

}  // namespace

std::vector<std::string> text_files(const std::string& folder, std::vector<std::string>& skipped) {
  if (!is_folder(folder))
    fail(ErrorKind::BadFile, "{}: not a folder; expected one with text files", folder);
  std::vector<std::string> files;
  collect(folder, "", 0, files, skipped);
  return files;
}

std::string read_text_file(const std::string& folder, const std::string& file) {
  std::string text = read_file(folder + "/" + file, kLargest);
  return utf8::valid_prefix(text) == text.size() ? text : utf8::repaired(text);
}

}  // namespace fovea
