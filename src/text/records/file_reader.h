#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace fovea::text {

// Reads a file in blocks of at most a megabyte, up to `bytes`, its size when it was first examined;
// data appended later is ignored. Throws BadFile if the file cannot be read or has shrunk.
class FileReader {
 public:
  FileReader(const std::string& path, int64_t bytes);
  ~FileReader();
  FileReader(const FileReader&) = delete;
  FileReader& operator=(const FileReader&) = delete;

  std::string_view next();  // the next block, valid until the next call; empty at the end
  bool at_end() const { return position_ == bytes_; }

 private:
  std::string path_, block_;
  int file_;
  int64_t bytes_, position_ = 0;
};

}  // namespace fovea::text
