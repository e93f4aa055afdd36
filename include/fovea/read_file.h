#pragma once

#include <cstddef>
#include <string>

namespace fovea {

// The default size limit of read_file(). Larger files are memory-mapped instead.
constexpr size_t kReadLimit = size_t{1} << 30;

// Returns the contents of a regular file of at most `limit` bytes. Throws BadFile for anything
// else; a FIFO is refused immediately.
std::string read_file(const std::string& path, size_t limit = kReadLimit);

}  // namespace fovea
