#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <string>

#include "fuzz.h"

namespace fovea {

// A file in memory that holds these bytes.
class MemoryFile {
 public:
  MemoryFile(const uint8_t* data, size_t size) : file_(memfd_create("fuzz", 0)) {
    require(file_ >= 0 && write(file_, data, size) == static_cast<ssize_t>(size),
            "a file in memory");
  }
  ~MemoryFile() { close(file_); }
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;

  std::string path() const { return "/proc/self/fd/" + std::to_string(file_); }

 private:
  int file_;
};

}  // namespace fovea
