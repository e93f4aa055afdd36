#include "search/text_files.h"

#include <algorithm>
#include <filesystem>

#include "base/error.h"
#include "base/files.h"
#include "base/files_below.h"
#include "search/documents.h"
#include "unicode/utf8.h"

namespace fovea::infer {
namespace {

namespace fs = std::filesystem;

constexpr size_t kLargest = size_t{64} << 20;  // larger files are data, not prose

bool is_readable(const std::string& path) {
  constexpr size_t kLooked = 8192;  // number of bytes that are examined, as in git
  const MappedFile file(path);
  return file.size() <= kLargest &&
         (DocumentReader::needs_program(path) ||
          file.bytes().substr(0, kLooked).find('\0') == std::string_view::npos);
}

}  // namespace

FoundTexts text_files(const std::string& folder, const std::string& only) {
  if (!is_folder(folder))
    fail(ErrorKind::BadFile, "{}: is not a folder; expected a folder with text files", folder);
  FoundTexts texts;
  const FilesBelow found = files_below(folder);
  const auto below = [&](const fs::path& path) { return path.lexically_relative(folder).string(); };
  const auto wanted = [&](const std::string& name) {
    return only == "." || name == only || name.starts_with(only + "/");
  };
  for (const fs::path& path : found.files)
    if (const std::string name = below(path); wanted(name))
      (is_readable(path.string()) ? texts.files : texts.skipped).push_back(name);
  for (const fs::path& link : found.links_out)
    if (const std::string name = below(link); wanted(name)) texts.links_out.push_back(name);
  std::ranges::sort(texts.files);
  return texts;
}

std::string read_text_file(const std::string& folder, const std::string& file) {
  std::string text = read_file(folder + "/" + file, kLargest);
  if (text.starts_with("\xEF\xBB\xBF")) text.erase(0, 3);  // a byte order mark
  return text::utf8::valid_prefix(text) == text.size() ? text : text::utf8::repaired(text);
}

}  // namespace fovea::infer
