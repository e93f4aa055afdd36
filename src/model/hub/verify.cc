#include <algorithm>
#include <filesystem>

#include "base/error.h"
#include "base/files.h"
#include "hub/digest.h"
#include "hub/name.h"

namespace fovea::model {

namespace fs = std::filesystem;

std::vector<std::string> verify_cached(const CachedRepository& repository,
                                       const std::function<bool(const PullProgress&)>& progress) {
  std::vector<std::string> wrong;
  PullProgress now{.done = 0, .bytes = repository.bytes, .event = ""};
  const auto tick = [&] { return !progress || progress(now); };
  const std::string blobs = repository.folder + "/blobs/";
  const auto names = is_folder(blobs) ? list_files(blobs) : std::vector<std::string>();
  for (const std::string& name : names) {
    HubFile file{.path = name, .bytes = fs::file_size(blobs + name), .hash = name, .cached = true};
    const bool named_by_hash = (name.size() == 64 || name.size() == 40) &&
                               name.find_first_not_of("0123456789abcdef") == name.npos;
    if (!named_by_hash) continue;  // such as HASH.incomplete
    const auto digest = digest_of(file);
    add_file(*digest, blobs + name, tick);
    if (!tick()) fail(ErrorKind::Failed, "{}: stopped", repository.name);
    now.done += file.bytes;
    if (const std::string found = digest->hexadecimal(); found != name)
      wrong.push_back(fmt::format("{}: is damaged: its hash is {}", blobs + name, found));
  }
  std::error_code error;
  for (fs::recursive_directory_iterator entry(repository.folder + "/snapshots", error), end;
       !error && entry != end; entry.increment(error)) {
    std::error_code lost;
    if (entry->is_symlink(lost) && !fs::exists(entry->path(), lost))
      wrong.push_back(fmt::format("{}: its contents are missing", entry->path().string()));
  }
  return wrong;
}

}  // namespace fovea::model
