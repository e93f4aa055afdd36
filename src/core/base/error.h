#pragma once

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "fovea/core/error.h"

namespace fovea {

template <class... Args>
[[noreturn]] void fail(ErrorKind kind, fmt::format_string<Args...> format, Args&&... args) {
  throw Error(kind, fmt::format(format, std::forward<Args>(args)...));
}

// Throws InvalidArgument if `holds` is false: a condition that the caller must meet, such as
// matching shapes of an op's inputs.
template <class... Args>
void check(bool holds, fmt::format_string<Args...> format, Args&&... args) {
  if (!holds) fail(ErrorKind::InvalidArgument, format, std::forward<Args>(args)...);
}

}  // namespace fovea
