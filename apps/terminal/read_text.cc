#include "terminal/read_text.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <vector>

#include "fovea/error.h"

namespace fovea::cli {
namespace {

[[noreturn]] void fail_reading(const std::string& name, int error) {
  throw Error(ErrorKind::BadFile, fmt::format("{}: cannot be read ({}); expected a text file", name,
                                              std::strerror(error)));
}

std::string read_all(int descriptor, const std::string& name, size_t most) {
  std::string content;
  std::vector<char> piece(size_t{1} << 16);
  while (true) {
    const ssize_t count = read(descriptor, piece.data(), piece.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) fail_reading(name, errno);
    if (count == 0) return content;
    content.append(piece.data(), static_cast<size_t>(count));
    if (content.size() > most) {
      throw Error(ErrorKind::BadFile,
                  fmt::format("{}: too large; expected at most {} bytes", name, most));
    }
  }
}

}  // namespace

std::string read_text(const std::string& path, size_t most) {
  if (path == "-") return read_all(STDIN_FILENO, "standard input", most);
  const int descriptor = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor < 0) fail_reading(path, errno);
  struct Closer {
    int descriptor;
    ~Closer() { close(descriptor); }
  } closer{descriptor};
  return read_all(descriptor, path, most);
}

}  // namespace fovea::cli
