#pragma once

#include <string>

namespace fovea::cli {

// A whole file, or standard input for "-". Throws BadFile where it cannot be read or is larger than
// `most` bytes.
std::string read_text(const std::string& path, size_t most);

}  // namespace fovea::cli
