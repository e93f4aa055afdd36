#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <string>
#include <string_view>

#include "base/error.h"

namespace fovea {

// A file in memory with these bytes, for libraries that open files by name.
class MemoryFile {
 public:
  explicit MemoryFile(std::string_view bytes = {}) : file_(memfd_create("fovea", MFD_CLOEXEC)) {
    const auto size = static_cast<ssize_t>(bytes.size());
    if (file_ < 0 || write(file_, bytes.data(), bytes.size()) != size) {
      if (file_ >= 0) close(file_);
      fail(ErrorKind::OutOfMemory, "memory file: cannot hold {} bytes; expected more free memory",
           size);
    }
  }
  ~MemoryFile() { close(file_); }
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;

  std::string path() const { return "/proc/self/fd/" + std::to_string(file_); }

 private:
  int file_;
};

}  // namespace fovea
