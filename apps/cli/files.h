#pragma once

#include <string>

#include "fovea/model.h"

namespace fovea::cli {

// A whole file, or standard input for "-". Error BadFile where it cannot be read or is larger than
// `most`.
std::string read_text(const std::string& path, size_t most);

// Opens a model and tells on standard error what is odd about its files.
Model open_model(const std::string& folder);

}  // namespace fovea::cli
