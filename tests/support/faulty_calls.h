#pragma once

#include <cerrno>

#include "base/files.h"
#include "support/temporary_folder.h"

namespace fovea {

// Counts the calls of open, write, fsync, close, rename, exchange (as rename) and mkdir, and lets
// one of them fail. The destructor restores the real file system.
class FaultyCalls {
 public:
  // The `fail_at`-th call, counted from 1, fails with `error`; 0 = no call fails. A failing write
  // first writes half of its bytes.
  explicit FaultyCalls(int fail_at, int error = ENOSPC) {
    calls_ = 0;
    fail_at_ = fail_at;
    error_ = error;
    real_ = &saved_.real();
    SystemCalls& calls = system_calls();
    calls.open = [](const char* path, int flags, mode_t mode) {
      return fails("open") ? -1 : real_->open(path, flags, mode);
    };
    calls.write = [](int file, const void* data, size_t bytes) -> ssize_t {
      if (!fails("write")) return real_->write(file, data, bytes);
      if (bytes > 1 && real_->write(file, data, bytes / 2) < 0) return -1;
      errno = error_;
      return -1;
    };
    calls.fsync = [](int file) { return fails("fsync") ? -1 : real_->fsync(file); };
    calls.close = [](int file) {
      const bool failing = fails("close");
      real_->close(file);
      errno = error_;
      return failing ? -1 : 0;
    };
    calls.rename = [](const char* from, const char* to) {
      return fails("rename") ? -1 : real_->rename(from, to);
    };
    calls.exchange = [](const char* one, const char* other) {
      return fails("rename") ? -1 : real_->exchange(one, other);
    };
    calls.mkdir = [](const char* path, mode_t mode) {
      return fails("mkdir") ? -1 : real_->mkdir(path, mode);
    };
  }

  int calls() const { return calls_; }
  const std::string& failed() const { return failed_; }  // the name of the failed call

 private:
  static bool fails(const char* name) {
    if (++calls_ != fail_at_) return false;
    failed_ = name;
    errno = error_;
    return true;
  }

  SavedCalls saved_;
  static inline const SystemCalls* real_ = nullptr;
  static inline int calls_ = 0;
  static inline int fail_at_ = 0;
  static inline int error_ = 0;
  static inline std::string failed_;
};

}  // namespace fovea
