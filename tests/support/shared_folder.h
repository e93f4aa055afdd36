#pragma once

#include <cstdlib>
#include <string>

namespace fovea {

// A path below the folder of reference fixtures, which only some checkouts have beside them.
inline std::string shared(const std::string& path) {
  const char* folder = std::getenv("FOVEA_SHARED");
  return std::string(folder != nullptr ? folder : "../shared") + "/" + path;
}

}  // namespace fovea
