#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>

namespace fovea {

// The CPUs' worth of time that this process's control groups (v1 or v2) grant it, rounded up; 0 =
// no limit. `membership` lists the groups of the process, `mount` is where their files are.
int64_t cgroup_cpu_limit(const std::filesystem::path& membership = "/proc/self/cgroup",
                         const std::filesystem::path& mount = "/sys/fs/cgroup");

// The memory that these groups still grant, in bytes; none = no limit.
std::optional<uint64_t> cgroup_free_memory(
    const std::filesystem::path& membership = "/proc/self/cgroup",
    const std::filesystem::path& mount = "/sys/fs/cgroup");

}  // namespace fovea
