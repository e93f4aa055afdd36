#pragma once

#include <cstddef>
#include <string>

namespace fovea {

// The default size limit of read_file(). Files that may be larger, such as weights, are mapped.
constexpr size_t kReadLimit = size_t{1} << 30;

// Returns the contents of a regular file. Throws OutOfMemory if it has more than `limit` bytes, and
// BadFile if it cannot be read or is not a regular file; a FIFO is refused immediately.
std::string read_file(const std::string& path, size_t limit = kReadLimit);

}  // namespace fovea
