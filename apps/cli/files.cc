#include "files.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <vector>

#include "fovea/error.h"
#include "ranks.h"
#include "terminal.h"

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

const std::vector<std::string> kWeightPrecisions = {"automatic|auto", "fp32|float32|f32",
                                                    "bf16|bfloat16", "int8", "int4"};

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

bool strict = false;

void warn(const std::vector<std::string>& warnings) {
  if (strict && !warnings.empty())
    throw Error(ErrorKind::BadFile, warnings[0] + "; expected nothing odd (--strict)");
  if (Ranks::only_helps()) return;
  for (const std::string& warning : warnings) note("warning: " + printable(warning) + "\n");
}

Option cache_option(int& value) {
  return choice("--cache-dtype", {"--kv-cache-dtype", "--cache-type"},
                "of keys and values; automatic = fp32 where the weights are, else bf16", value,
                {"automatic|auto", "fp32|float32|f32", "bf16|bfloat16", "int8"});
}

Model open_model(const std::string& folder, WeightPrecision precision, CachePrecision cache) {
  std::vector<std::string> warnings;
  Model model = Model::open(folder, &warnings, precision, cache);
  warn(warnings);
  return model;
}

Embedder open_embedder(const std::string& folder, WeightPrecision precision) {
  std::vector<std::string> warnings;
  Embedder embedder = Embedder::open(folder, &warnings, precision);
  warn(warnings);
  return embedder;
}

}  // namespace fovea::cli
