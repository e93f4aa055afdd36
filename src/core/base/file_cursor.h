#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

#include "base/error.h"
#include "base/files.h"

namespace fovea {

// Reads an untrusted binary file from its beginning, little-endian. Throws BadFile, naming the file
// and the byte, if it ends too early.
class FileCursor {
 public:
  explicit FileCursor(const MappedFile& file) : file_(file) {}

  template <class T>
  T number(const char* what) {
    T value;
    std::memcpy(&value, take(sizeof value, what).data(), sizeof value);
    return value;
  }

  std::string_view take(uint64_t bytes, const char* what) {
    if (bytes > file_.size() - position_)
      refuse(fmt::format("ends within {} that needs {} bytes", what, bytes), "a complete file");
    const std::string_view taken = file_.bytes().substr(position_, bytes);
    position_ += bytes;
    return taken;
  }

  bool at_end() const { return position_ == file_.size(); }
  size_t position() const { return position_; }
  const MappedFile& file() const { return file_; }
  size_t left() const { return file_.size() - position_; }

  [[noreturn]] void refuse(const std::string& wrong, const std::string& expected) const {
    fail(ErrorKind::BadFile, "{}: {} (byte {}); expected {}", file_.path(), wrong, position_,
         expected);
  }

 private:
  const MappedFile& file_;
  size_t position_ = 0;
};

}  // namespace fovea
