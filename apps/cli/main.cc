#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "cli/command.h"

#if defined(__x86_64__)
namespace {

// Ends the program if the CPU lacks instructions for which the library is compiled. Its static
// initialisers use them, so this function runs before them, and calls no code of the library.
void require_cpu() {
  __builtin_cpu_init();
  const std::pair<bool, const char*> features[] = {{__builtin_cpu_supports("avx2"), " avx2"},
                                                   {__builtin_cpu_supports("fma"), " fma"},
                                                   {__builtin_cpu_supports("bmi"), " bmi"},
                                                   {__builtin_cpu_supports("bmi2"), " bmi2"}};
  const auto say = [](const char* text) {
    if (::write(STDERR_FILENO, text, std::strlen(text)) < 0) _exit(2);
  };
  if (std::ranges::all_of(features, [](const auto& feature) { return feature.first; })) return;
  say("fovea: error: this CPU: missing");
  for (const auto& [present, name] : features)
    if (!present) say(name);
  say("; expected an x86-64-v3 CPU\n");
  _exit(2);
}

[[gnu::used, gnu::section(".preinit_array")]] void (*const first_of_all)() = require_cpu;

}  // namespace
#endif

int main(int argc, char** argv) {
  return fovea::cli::run_program({argv + std::min(argc, 1), argv + argc});
}
