#include "base/cgroup.h"

#include <algorithm>
#include <fstream>
#include <limits>
#include <string>

namespace fovea {
namespace {

constexpr int64_t kNoLimit = std::numeric_limits<int64_t>::max();

int64_t cpus(int64_t quota, int64_t period) {
  return quota > 0 && period > 0 ? (quota - 1) / period + 1 : kNoLimit;
}

// Returns the CPU limit of a group. Version 2 has "<quota or max> <period>" in one file; version 1
// has one file for each, and the quota -1 for no limit.
int64_t cpus_of(const std::filesystem::path& group) {
  int64_t quota = 0, period = 0;
  if (std::ifstream file(group / "cpu.max"); file >> quota >> period) return cpus(quota, period);
  std::ifstream quota_file(group / "cpu.cfs_quota_us"), period_file(group / "cpu.cfs_period_us");
  return quota_file >> quota && period_file >> period ? cpus(quota, period) : kNoLimit;
}

int64_t free_memory_of(const std::filesystem::path& group) {
  for (const auto& [limit_file, used_file] :
       {std::pair{"memory.max", "memory.current"},
        std::pair{"memory.limit_in_bytes", "memory.usage_in_bytes"}}) {
    int64_t limit = 0, used = 0;
    std::ifstream limits(group / limit_file), uses(group / used_file);
    if (limits >> limit && uses >> used) return std::max<int64_t>(0, limit - used);
  }
  return kNoLimit;
}

// Returns the tightest limit of a group and of all groups above it. In a container, the path may be
// the host's and not exist here; only the groups that exist count.
template <class Limit>
int64_t tightest(const std::filesystem::path& mount, const std::filesystem::path& group,
                 Limit limit_of_group) {
  int64_t limit = limit_of_group(mount);
  std::filesystem::path here = mount;
  for (const auto& part : group.relative_path())
    limit = std::min(limit, limit_of_group(here /= part));
  return limit;
}

// Returns the tightest limit of the process's groups for `controller`.
template <class Limit>
int64_t group_limit(const std::filesystem::path& membership, const std::filesystem::path& mount,
                    const std::string& controller, Limit limit_of_group) {
  int64_t limit = kNoLimit;
  std::ifstream groups(membership);
  // Each line is "<id>:<controllers>:<path>"; in version 2, <controllers> is empty.
  for (std::string line; std::getline(groups, line);) {
    const size_t first = line.find(':'), second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    const std::string path = line.substr(second + 1);
    if (controllers.empty()) limit = std::min(limit, tightest(mount, path, limit_of_group));
    if (("," + controllers + ",").find("," + controller + ",") == std::string::npos) continue;
    limit = std::min({limit, tightest(mount / controllers, path, limit_of_group),
                      tightest(mount / controller, path, limit_of_group)});
  }
  return limit;
}

}  // namespace

int64_t cgroup_cpu_limit(const std::filesystem::path& membership,
                         const std::filesystem::path& mount) {
  const int64_t limit = group_limit(membership, mount, "cpu", cpus_of);
  return limit == kNoLimit ? 0 : limit;
}

std::optional<uint64_t> cgroup_free_memory(const std::filesystem::path& membership,
                                           const std::filesystem::path& mount) {
  const int64_t limit = group_limit(membership, mount, "memory", free_memory_of);
  if (limit == kNoLimit) return std::nullopt;
  return static_cast<uint64_t>(limit);
}

}  // namespace fovea
