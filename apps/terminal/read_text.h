#pragma once

#include <string>

namespace fovea::cli {

// Reads a complete file, or standard input for "-". Throws BadFile if it cannot be read or is
// larger than `most` bytes.
std::string read_text(const std::string& path, size_t most);

}  // namespace fovea::cli
