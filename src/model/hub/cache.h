#pragma once

// The layout of the cache, as huggingface_hub has it:
//   models--USER--NAME/refs/REVISION       the commit of a branch or a tag
//   models--USER--NAME/blobs/HASH          the contents of files; HASH.incomplete while fetched
//   models--USER--NAME/snapshots/COMMIT/FILE -> ../../blobs/HASH
//   .locks/models--USER--NAME/HASH.lock    locked by flock() while HASH is fetched

#include <functional>
#include <string>

#include "fovea/model/hub.h"

namespace fovea::model {

// "models--USER--NAME" or "datasets--USER--NAME"
std::string cache_folder_name(const HubName& name);
std::string cache_folder(const HubName& name, const HubSettings& settings);

// Returns the model or data set of a commit in the cache; empty if a file is missing.
std::string cached_path(const HubName& name, const std::string& commit,
                        const HubSettings& settings);
// The same for the commit of name.revision.
std::string cached_path(const HubName& name, const HubSettings& settings);

// Makes snapshots/COMMIT/FILE.path a link to the blob of the file, which must exist.
void link_blob(const std::string& folder, const std::string& commit, const HubFile& file);

// A lock that other processes with flock() respect; released at the latest when the process ends.
class CacheLock {
 public:
  // Waits while another process has the lock and `wait` returns true; throws Failed if it is false.
  CacheLock(const std::string& path, const std::function<bool()>& wait);
  ~CacheLock();
  CacheLock(const CacheLock&) = delete;
  CacheLock& operator=(const CacheLock&) = delete;

 private:
  int file_ = -1;
};

}  // namespace fovea::model
