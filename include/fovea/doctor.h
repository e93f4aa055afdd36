#pragma once

#include <string>
#include <vector>

namespace fovea {

struct Finding {
  std::string topic;    // "instruction sets", "cores", ...
  std::string message;  // one line
  bool good = true;     // false = a problem
};

// Checks this machine and, with `folder`, whether the model and the snapshots in it are intact. A
// damaged file is a finding, not an error.
std::vector<Finding> doctor(const std::string& folder = "");

}  // namespace fovea
