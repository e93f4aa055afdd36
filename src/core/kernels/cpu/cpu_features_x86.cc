#include "kernels/cpu/cpu_features.h"

#include <cpuid.h>

#include <utility>

namespace fovea {

Cpuid cpuid(uint32_t leaf, uint32_t subleaf) {
  Cpuid out;
  __get_cpuid_count(leaf, subleaf, &out.a, &out.b, &out.c, &out.d);
  return out;
}

std::string missing_cpu_features() {
  const uint32_t basic = cpuid(1, 0).c, extended = cpuid(0x80000001, 0).c;
  // avx2 and fma also need the operating system's support, which __builtin_cpu_supports checks.
  // f16c needs the same support as avx2; the others need none.
  const std::pair<bool, const char*> features[] = {
      {__builtin_cpu_supports("avx2"), "avx2"}, {__builtin_cpu_supports("fma"), "fma"},
      {__builtin_cpu_supports("bmi"), "bmi"},   {__builtin_cpu_supports("bmi2"), "bmi2"},
      {(basic >> 29 & 1) != 0, "f16c"},         {(basic >> 22 & 1) != 0, "movbe"},
      {(extended >> 5 & 1) != 0, "lzcnt"},
  };
  std::string missing;
  for (const auto& [present, name] : features) {
    if (!present) missing += (missing.empty() ? "" : ", ") + std::string(name);
  }
  return missing;
}

}  // namespace fovea
