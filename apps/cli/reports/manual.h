#pragma once

#include <string>
#include <vector>

#include "options/options.h"

namespace fovea::cli {

// A verb of the program, as its manual page and the completions describe it.
struct VerbDescription {
  std::string name, summary;  // of the list of verbs
  std::string usage, description;
  std::vector<Option> options;
};

// Returns a manual page in the macros of man(7): of the program, or of one verb.
std::string manual_page(const std::vector<VerbDescription>& verbs);
std::string manual_page(const VerbDescription& verb);

}  // namespace fovea::cli
