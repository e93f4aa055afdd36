#include "terminal/history_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include "base/files.h"
#include "fovea/core/error.h"
#include "fovea/text/text_lines.h"

namespace fovea::cli {
namespace {

constexpr size_t kMostBytes = 16 << 20;

std::string state_folder() {
  const char* const state = std::getenv("XDG_STATE_HOME");
  if (state != nullptr && *state == '/') return std::string(state) + "/fovea";
  const char* const home = std::getenv("HOME");
  if (home == nullptr || *home != '/') return "";
  return std::string(home) + "/.local/state/fovea";
}

}  // namespace

HistoryFile::HistoryFile(const std::string& name) {
  const std::string folder = name.empty() ? "" : state_folder();
  std::error_code failed;
  if (folder.empty() || (std::filesystem::create_directories(folder, failed), failed)) return;
  path_ = folder + "/" + name;
}

std::vector<std::string> HistoryFile::lines(size_t most) const {
  std::vector<std::string> all;
  std::error_code failed;
  if (path_.empty() || !std::filesystem::is_regular_file(path_, failed)) return all;
  try {
    const std::string content = text::read_text(path_, kMostBytes);
    for (size_t begin = 0, end = 0; begin < content.size(); begin = end + 1) {
      end = std::min(content.find('\n', begin), content.size());
      if (end > begin) all.push_back(content.substr(begin, end - begin));
    }
    if (all.size() <= most) return all;
    const bool shortens = all.size() > 2 * most;
    all.erase(all.begin(), all.end() - static_cast<std::ptrdiff_t>(most));
    if (!shortens) return all;
    std::string kept;
    for (const std::string& line : all) kept += line + "\n";
    write_file_atomically(path_, kept);
    chmod(path_.c_str(), S_IRUSR | S_IWUSR);
  } catch (const Error&) {  // NOLINT(bugprone-empty-catch): a chat works without its history
  }
  return all;
}

void HistoryFile::add(const std::string& line) const {
  if (path_.empty()) return;
  const int file = open(path_.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOFOLLOW,
                        S_IRUSR | S_IWUSR);
  if (file < 0) return;
  const std::string text = line + "\n";
  static_cast<void>(!write(file, text.data(), text.size()));  // one call: sessions may overlap
  close(file);
}

}  // namespace fovea::cli
