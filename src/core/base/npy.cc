#include "base/npy.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace fovea {

// Magic, version 1.0, length of the rest, and a Python literal padded with spaces, so that the
// array is aligned.
std::string npy_header(const std::string& type, std::span<const int64_t> shape) {
  constexpr size_t kAlignment = 64, kStart = 10;
  const std::string axes =
      fmt::format("{}{}", fmt::join(shape, ", "), shape.size() == 1 ? "," : "");
  std::string literal =
      fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': ({}), }}", type, axes);
  const size_t bytes = (kStart + literal.size() + 1 + kAlignment - 1) / kAlignment * kAlignment;
  literal.resize(bytes - kStart - 1, ' ');
  literal += '\n';
  std::string header("\x93NUMPY\x01\x00", 8);
  header += static_cast<char>(literal.size() & 0xff);
  header += static_cast<char>(literal.size() >> 8);
  return header + literal;
}

}  // namespace fovea
