#include "hub/cache.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <thread>

#include "base/error.h"
#include "base/files.h"
#include "base/machine.h"
#include "hub/name.h"
#include "hub/selection.h"

namespace fovea::model {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMostSmall = 4096;  // bytes of a commit's hash or of a token

bool exists(const std::string& path) {
  std::error_code unreadable;
  return fs::exists(path, unreadable);
}

std::string variable(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? "" : value;
}

// Returns the text of a small file without the spaces around it; empty if the file is missing.
std::string small_file(const std::string& path) {
  if (!is_file(path)) return "";
  const std::string text = read_file(path, kMostSmall);
  const size_t begin = text.find_first_not_of(" \n\r\t");
  return begin == text.npos ? "" : text.substr(begin, text.find_last_not_of(" \n\r\t") - begin + 1);
}

bool is_true(std::string value) {
  for (char& c : value) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  return value == "1" || value == "ON" || value == "YES" || value == "TRUE";
}

// Returns the files of a folder and its subfolders, with their sizes; a link to a missing file is
// missing too.
std::vector<HubFile> files_in(const std::string& folder) {
  std::vector<HubFile> files;
  std::error_code error;
  for (fs::recursive_directory_iterator entry(folder, error), end; !error && entry != end;
       entry.increment(error)) {
    std::error_code lost;
    if (!entry->is_regular_file(lost)) continue;
    files.push_back(
        {entry->path().lexically_relative(folder).string(), entry->file_size(lost), "", true});
  }
  std::sort(files.begin(), files.end(),
            [](const HubFile& a, const HubFile& b) { return a.path < b.path; });
  return files;
}

std::vector<std::string> folders_in(const std::string& folder) {
  return is_folder(folder) ? list_folders(folder) : std::vector<std::string>();
}

std::string commit_of(const HubName& name, const HubSettings& settings) {
  if (is_commit(name.revision)) return name.revision;
  const std::string commit = small_file(cache_folder(name, settings) + "/refs/" + name.revision);
  return is_commit(commit) ? commit : "";
}

// Returns the name if `text` is one of the Hub: nothing has this path, and a name without hf: does
// not begin with a folder that is here.
std::optional<HubName> name_at_hub(const std::string& text, const HubSettings& settings) {
  if (exists(text)) return {};
  const auto parsed = parse_name(text, settings);
  const bool path = parsed && !parsed->certain && is_folder(text.substr(0, text.find('/')));
  return parsed && !path ? std::optional(parsed->name) : std::nullopt;
}

}  // namespace

HubSettings hub_settings() {
  HubSettings settings;
  settings.endpoint = variable("HF_ENDPOINT");
  if (settings.endpoint.empty()) settings.endpoint = "https://huggingface.co";
  while (settings.endpoint.ends_with('/')) settings.endpoint.pop_back();
  const auto under = [](const char* name, const char* below) {
    const std::string value = variable(name);
    return value.empty() ? value : value + below;
  };
  std::string home = variable("HF_HOME");
  if (home.empty()) home = under("XDG_CACHE_HOME", "/huggingface");
  if (home.empty()) home = under("HOME", "/.cache/huggingface");
  settings.cache = variable("HF_HUB_CACHE");
  if (settings.cache.empty()) settings.cache = home + "/hub";
  settings.token = variable("HF_TOKEN");
  if (settings.token.empty()) {
    const std::string file = variable("HF_TOKEN_PATH");
    settings.token = small_file(file.empty() ? home + "/token" : file);
  }
  settings.offline = is_true(variable("HF_HUB_OFFLINE"));
  settings.memory = available_memory();
  return settings;
}

std::string cache_folder_name(const HubName& name) {
  std::string repository = name.repository;
  if (const size_t slash = repository.find('/'); slash != repository.npos)
    repository.replace(slash, 1, "--");
  return (name.dataset ? "datasets--" : "models--") + repository;
}

std::string cache_folder(const HubName& name, const HubSettings& settings) {
  return settings.cache + "/" + cache_folder_name(name);
}

std::string cached_path(const HubName& name, const std::string& commit,
                        const HubSettings& settings) {
  const std::string folder = cache_folder(name, settings) + "/snapshots/" + commit;
  if (commit.empty() || !is_folder(folder)) return "";
  try {
    const Selection selection = select_files(files_in(folder), name, settings);
    if (!selection.model.empty()) return folder + "/" + selection.model;
    return name.dataset || is_file(folder + "/config.json") ||
                   is_file(folder + "/adapter_config.json") || is_file(folder + "/modules.json")
               ? folder
               : "";
  } catch (const Error&) {  // a part is missing
    return "";
  }
}

std::string cached_path(const HubName& name, const HubSettings& settings) {
  return cached_path(name, commit_of(name, settings), settings);
}

std::string find_model(const std::string& text) {
  const HubSettings settings = hub_settings();
  auto name = name_at_hub(text, settings);
  if (!name && !exists(text) && text.find('/') == text.npos && is_repository(text))
    name = {.repository = text};  // of the oldest models
  const std::string path = name ? cached_path(*name, settings) : "";
  return path.empty() ? text : path;
}

std::optional<HubName> missing_model(const std::string& text) {
  const HubSettings settings = hub_settings();
  const auto name = name_at_hub(text, settings);
  return name && cached_path(*name, settings).empty() ? name : std::nullopt;
}

void link_blob(const std::string& folder, const std::string& commit, const HubFile& file) {
  const std::string link = folder + "/snapshots/" + commit + "/" + file.path;
  make_directories(parent_of(link));
  std::string up = "../../";
  for (const char c : file.path)
    if (c == '/') up += "../";
  const std::string target = up + "blobs/" + file.hash;
  std::error_code error;
  if (fs::is_symlink(link, error) && fs::read_symlink(link, error) == target) return;
  // Replaced in one step, so that no reader finds the file missing.
  const std::string made = link + ".link-" + std::to_string(getpid());
  fs::remove(made, error);
  fs::create_symlink(target, made, error);
  if (!error) fs::rename(made, link, error);
  if (error) fail(ErrorKind::Failed, "{}: cannot be linked: {}", link, error.message());
}

CacheLock::CacheLock(const std::string& path, const std::function<bool()>& wait) {
  make_directories(parent_of(path));
  constexpr mode_t kMode = 0664;  // users who share a cache wait for one another
  file_ = open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, kMode);
  if (file_ < 0) fail(ErrorKind::Failed, "{}: cannot be opened: {}", path, std::strerror(errno));
  while (flock(file_, LOCK_EX | LOCK_NB) != 0) {
    // Some file systems have no locks; without one, two processes write the same bytes twice.
    if (errno != EWOULDBLOCK && errno != EINTR) break;
    if (!wait()) {
      close(file_);
      fail(ErrorKind::Failed, "{}: is locked by another program", path);
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
  }
}

CacheLock::~CacheLock() { close(file_); }

std::vector<CachedRepository> cached_repositories(const HubSettings& settings) {
  std::vector<CachedRepository> all;
  for (const std::string& folder : folders_in(settings.cache)) {
    HubName name;
    name.dataset = folder.starts_with("datasets--");
    if (!name.dataset && !folder.starts_with("models--")) continue;
    name.repository = folder.substr(folder.find("--") + 2);
    if (const size_t dashes = name.repository.find("--"); dashes != name.repository.npos)
      name.repository.replace(dashes, 2, "/");
    if (!is_repository(name.repository)) continue;
    CachedRepository repository{
        .name = name.repository, .dataset = name.dataset, .folder = settings.cache + "/" + folder};
    for (const HubFile& blob : files_in(repository.folder + "/blobs")) {
      repository.bytes += blob.bytes;
      struct stat status = {};
      if (stat((repository.folder + "/blobs/" + blob.path).c_str(), &status) == 0)
        repository.last_used =
            std::max({repository.last_used, int64_t{status.st_atime}, int64_t{status.st_mtime}});
    }
    repository.path = cached_path(name, settings);
    for (const std::string& commit : folders_in(repository.folder + "/snapshots"))
      if (repository.path.empty()) repository.path = cached_path(name, commit, settings);
    all.push_back(std::move(repository));
  }
  return all;
}

void remove_cached(const CachedRepository& repository) {
  if (!is_folder(repository.folder))
    fail(ErrorKind::BadFile, "{}: is not in the cache", repository.name);
  const fs::path folder(repository.folder);
  const std::string locks = (folder.parent_path() / ".locks" / folder.filename()).string();
  if (is_folder(locks))
    for (const std::string& name : list_files(locks))
      const CacheLock lock(locks + "/" + name, [] { return false; });
  remove_folder(repository.folder);
  remove_tree(locks);
}

}  // namespace fovea::model
