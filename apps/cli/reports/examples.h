#pragma once

#include <span>

namespace fovea::cli {

// A command in the manual page of a verb, and what it does.
struct Example {
  const char *verb, *command, *purpose;
};

std::span<const Example> examples();

}  // namespace fovea::cli
