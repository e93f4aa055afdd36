#include "base/machine.h"

#include <sys/resource.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>

#include "base/cgroup.h"

namespace fovea {
namespace {

// Returns the value of `key` in a file of /proc with lines "key: value kB", in bytes; 0 if it is
// missing.
uint64_t kilobytes(const char* path, const std::string& key) {
  std::ifstream file(path);
  std::string line;
  while (std::getline(file, line)) {
    if (!line.starts_with(key)) continue;
    return std::strtoull(line.c_str() + line.find_first_of("0123456789"), nullptr, 10) * 1024;
  }
  return 0;
}

}  // namespace

uint64_t total_memory() { return kilobytes("/proc/meminfo", "MemTotal:"); }
uint64_t resident_memory() { return kilobytes("/proc/self/status", "VmRSS:"); }
uint64_t private_memory() { return kilobytes("/proc/self/status", "RssAnon:"); }
uint64_t resident_peak() { return kilobytes("/proc/self/status", "VmHWM:"); }

uint64_t available_memory() {
  uint64_t least = kilobytes("/proc/meminfo", "MemAvailable:");
  if (const auto limit = cgroup_free_memory()) least = std::min(least, *limit);
  rlimit space{};
  if (getrlimit(RLIMIT_AS, &space) == 0 && space.rlim_cur != RLIM_INFINITY) {
    const uint64_t used = kilobytes("/proc/self/status", "VmSize:");
    least = std::min<uint64_t>(least, space.rlim_cur > used ? space.rlim_cur - used : 0);
  }
  return least;
}

std::string cpu_name() {
  std::ifstream file("/proc/cpuinfo");
  std::string line;
  while (std::getline(file, line)) {
    if (line.starts_with("model name")) return line.substr(line.find(':') + 2);
  }
  return "unknown";
}

}  // namespace fovea
