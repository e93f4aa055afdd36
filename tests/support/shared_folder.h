#pragma once

#include <cstdlib>
#include <string>

namespace fovea {

// Returns a path in the folder of reference fixtures, which only some checkouts have.
inline std::string shared(const std::string& path) {
  const char* folder = std::getenv("FOVEA_SHARED");
  return std::string(folder != nullptr ? folder : "../shared") + "/" + path;
}

}  // namespace fovea
