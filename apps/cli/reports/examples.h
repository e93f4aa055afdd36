#pragma once

#include <vector>

namespace fovea::cli {

// A command in the manual page of a verb, and what it does.
struct Example {
  const char *verb, *command, *purpose;
};

const std::vector<Example>& examples();

}  // namespace fovea::cli
