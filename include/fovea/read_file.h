#pragma once

#include <cstddef>
#include <string>

namespace fovea {

// The contents of a regular file of at most `limit` bytes, held in memory. BadFile for anything
// else: a FIFO is refused without waiting for its writer. (Declared in base/files.h too.)
std::string read_file(const std::string& path, size_t limit);

}  // namespace fovea
