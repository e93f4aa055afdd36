#pragma once

#include <unistd.h>

#include <cstdlib>
#include <string>

#include "base/files.h"

namespace fovea {

// A folder outside the source tree that is removed at the end of the test.
class TemporaryFolder {
 public:
  TemporaryFolder() {
    const char* root = std::getenv("TMPDIR");
    // /dev/shm is in memory, where fsync takes no time.
    const char* fallback = is_folder("/dev/shm") ? "/dev/shm" : "/tmp";
    path_ = std::string(root != nullptr ? root : fallback) + "/fovea-test-XXXXXX";
    if (mkdtemp(path_.data()) == nullptr) std::abort();
  }
  ~TemporaryFolder() { remove_tree(path_); }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  const std::string& path() const { return path_; }
  std::string operator/(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

// Restores the real file system on destruction.
class SavedCalls {
 public:
  SavedCalls() : saved_(system_calls()) {}
  ~SavedCalls() { system_calls() = saved_; }
  SavedCalls(const SavedCalls&) = delete;
  SavedCalls& operator=(const SavedCalls&) = delete;
  const SystemCalls& real() const { return saved_; }

 private:
  SystemCalls saved_;
};

}  // namespace fovea
