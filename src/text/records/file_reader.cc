#include "records/file_reader.h"

#include <fcntl.h>

#include <algorithm>
#include <cerrno>
#include <system_error>

#include "base/error.h"
#include "base/files.h"

namespace fovea::text {
namespace {

// A block is large enough that the time of its system call is negligible, and small enough to stay
// in the cache while it is processed.
constexpr int64_t block_bytes = 1 << 20;

[[noreturn]] void fail_to_read(const std::string& path) {
  fail(ErrorKind::BadFile, "{}: cannot be read ({}); expected a readable file", path,
       std::generic_category().message(errno));
}

}  // namespace

// With O_NONBLOCK, open() does not wait for a writer if a FIFO has replaced the file.
FileReader::FileReader(const std::string& path, int64_t bytes)
    : path_(path),
      file_(system_calls().open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK, 0)),
      bytes_(bytes) {
  if (file_ < 0) fail_to_read(path_);
}

FileReader::~FileReader() { system_calls().close(file_); }

std::string_view FileReader::next() {
  block_.resize(static_cast<size_t>(std::min(block_bytes, bytes_ - position_)));
  size_t filled = 0;
  while (filled < block_.size()) {
    const ssize_t got = system_calls().read(file_, block_.data() + filled, block_.size() - filled);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) fail_to_read(path_);
    if (got == 0) {
      fail(ErrorKind::BadFile,
           "{}: shrank while it was read (at byte {} of {}); expected a file that does not change",
           path_, position_ + static_cast<int64_t>(filled), bytes_);
    }
    filled += static_cast<size_t>(got);
  }
  position_ += static_cast<int64_t>(filled);
  return block_;
}

}  // namespace fovea::text
