// Functions without a handle.
#include <cstdio>

#include "base/threads.h"
#include "c/guard.h"
#include "fovea/core/machine.h"

using namespace fovea::c;

const char* fovea_version(void) {
  static const std::string text = fovea::version();
  return text.c_str();
}

void fovea_version_numbers(int* major, int* minor, int* patch) {
  int numbers[3] = {};
  std::sscanf(fovea_version(), "%d.%d.%d", &numbers[0], &numbers[1], &numbers[2]);
  if (major != nullptr) *major = numbers[0];
  if (minor != nullptr) *minor = numbers[1];
  if (patch != nullptr) *patch = numbers[2];
}

const char* fovea_error(void) { return thread_message().text(); }

fovea_status fovea_set_threads(int count) {
  return guard([&] {
    fovea::check(count >= 1 && count <= fovea::kMostThreads, "threads: {}; expected 1 to {}", count,
                 fovea::kMostThreads);
    fovea::set_threads(count);
  });
}

int fovea_threads(void) { return fovea::thread_count(); }
