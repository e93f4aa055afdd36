#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>

namespace fovea {

// Returns the number of CPUs that this process's control groups (v1 or v2) allow, rounded up; 0 =
// no limit. `membership` lists the groups of the process; `mount` is the directory of their files.
int64_t cgroup_cpu_limit(const std::filesystem::path& membership = "/proc/self/cgroup",
                         const std::filesystem::path& mount = "/sys/fs/cgroup");

// Returns the memory in bytes that these groups still allow, or nothing if they have no limit.
std::optional<uint64_t> cgroup_free_memory(
    const std::filesystem::path& membership = "/proc/self/cgroup",
    const std::filesystem::path& mount = "/sys/fs/cgroup");

}  // namespace fovea
