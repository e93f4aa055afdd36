#include "output_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "fovea/error.h"
#include "terminal.h"

namespace fovea::cli {

OutputFile::OutputFile(const std::string& path, Beginning beginning) : path_(path) {
  if (path.empty() && beginning == Beginning::as_written) return;
  const char* folder = std::getenv("TMPDIR");
  temporary_ = path.empty() ? fmt::format("{}/fovea-XXXXXX", folder != nullptr ? folder : "/tmp")
                            : path + ".XXXXXX";
  file_ = mkostemp(temporary_.data(), O_CLOEXEC);
  if (file_ < 0) fail();
  if (!path.empty()) return;
  unlink(temporary_.c_str());
  temporary_.clear();
}

OutputFile::~OutputFile() {
  if (file_ >= 0) close(file_);
  if (!temporary_.empty()) unlink(temporary_.c_str());
}

void OutputFile::fail() const {
  throw Error(ErrorKind::Failed,
              fmt::format("{}: cannot be written ({}); expected a folder with space left",
                          path_.empty() ? "temporary file" : path_, std::strerror(errno)));
}

void OutputFile::write(std::string_view bytes) {
  if (file_ < 0) return print(bytes);
  while (!bytes.empty()) {
    const ssize_t count = ::write(file_, bytes.data(), bytes.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) fail();
    bytes.remove_prefix(static_cast<size_t>(count));
  }
}

void OutputFile::rewrite_beginning(std::string_view bytes) {
  if (pwrite(file_, bytes.data(), bytes.size(), 0) != static_cast<ssize_t>(bytes.size())) fail();
}

void OutputFile::copy_to_standard_output() {
  std::vector<char> piece(size_t{1} << 16);
  for (off_t at = 0;;) {
    const ssize_t count = pread(file_, piece.data(), piece.size(), at);
    if (count < 0) fail();
    if (count == 0) return;
    print({piece.data(), static_cast<size_t>(count)});
    at += count;
  }
}

void OutputFile::finish() {
  if (file_ < 0) return;
  if (path_.empty()) return copy_to_standard_output();
  constexpr mode_t kReadable = 0644;  // what a new file mostly has; mkostemp gives 0600
  const mode_t mask = umask(0);
  umask(mask);
  if (fchmod(file_, kReadable & ~mask) != 0 || fsync(file_) != 0) fail();
  if (rename(temporary_.c_str(), path_.c_str()) != 0) fail();
  temporary_.clear();
}

}  // namespace fovea::cli
