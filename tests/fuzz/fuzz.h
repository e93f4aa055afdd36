#pragma once

// The invariant of every fuzz target: untrusted bytes give a result or an Error of one line. A
// target is a file with one function, LLVMFuzzerTestOneInput. tests/fuzz.cmake builds two programs
// from it: one for libFuzzer, and one that replays corpus/TARGET as a test.

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <string_view>
#include <utility>

#include "base/error.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

namespace fovea {

// Asserts a condition in every build.
inline void require(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "violated: %s\n", what);
  std::abort();
}

// Runs `action` and returns whether it ended without an Error.
template <class Action>
bool succeeds(Action&& action) {
  try {
    action();
    return true;
  } catch (const Error& error) {
    require(std::string_view(error.what()).find('\n') == std::string_view::npos,
            "an error is one line");
    return false;
  }
}

// Like succeeds(), but also checks that `action` ends within a limit of CPU time, which is ample
// even under sanitizers.
template <class Action>
bool succeeds_soon(Action&& action) {
  constexpr std::clock_t kMostSeconds = 30;
  const std::clock_t begin = std::clock();
  const bool succeeded = succeeds(std::forward<Action>(action));
  require(std::clock() - begin < kMostSeconds * CLOCKS_PER_SEC, "it ends within the time limit");
  return succeeded;
}

inline std::string_view text_of(const uint8_t* data, size_t size) {
  return {reinterpret_cast<const char*>(data), size};
}

// The input of a target that takes two texts, split at the first NUL.
struct TwoTexts {
  std::string_view first, second;
};
inline TwoTexts two_texts(const uint8_t* data, size_t size) {
  const std::string_view text = text_of(data, size);
  const size_t end = text.find('\0');
  if (end == text.npos) return {text, {}};
  return {text.substr(0, end), text.substr(end + 1)};
}

}  // namespace fovea
