#pragma once

#include <cstddef>
#include <string>

namespace fovea {

// For files that are held in memory at once; larger ones are mapped.
constexpr size_t kReadLimit = size_t{1} << 30;

// The contents of a regular file of at most `limit` bytes. Throws BadFile for anything else: a FIFO
// is refused without waiting for its writer.
std::string read_file(const std::string& path, size_t limit = kReadLimit);

}  // namespace fovea
