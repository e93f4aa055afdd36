#pragma once

#include <cstdint>
#include <string>

namespace fovea {

#ifndef __aarch64__
// The result of the CPUID instruction; zeros for a leaf that the CPU does not have.
struct Cpuid {
  uint32_t a = 0, b = 0, c = 0, d = 0;
};
Cpuid cpuid(uint32_t leaf, uint32_t subleaf);
#endif

// Returns the x86-64-v3 features that this CPU or operating system lacks, such as "avx2, fma";
// empty if fovea can run, as on every ARM64 CPU. Call it before any other function of the library:
// only its file is compiled for baseline x86-64, all others for x86-64-v3.
std::string missing_cpu_features();

}  // namespace fovea
