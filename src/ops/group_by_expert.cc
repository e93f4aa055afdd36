#include <limits>
#include <numeric>

#include "base/error.h"
#include "ops/ops.h"

namespace fovea {

Groups group_by_expert(const Tensor& experts, int64_t expert_count) {
  check(experts.rank() == 2 && experts.dtype() == DType::i32 && expert_count > 0 &&
            experts.size() <= std::numeric_limits<int32_t>::max(),
        "group_by_expert: choices are {} {} of {} experts; expected int32 [R, k], fewer than 2^31 "
        "choices and at least one expert",
        name_of(experts.dtype()), experts.shape(), expert_count);
  const int64_t choices = experts.size(), k = experts.dim(1);
  const int32_t* expert = experts.data_as<int32_t>();
  Groups groups{empty({choices}, DType::i32), empty_like(experts),
                std::vector<int64_t>(static_cast<size_t>(expert_count))};
  for (int64_t i = 0; i < choices; ++i) {
    check(expert[i] >= 0 && expert[i] < expert_count,
          "group_by_expert: expert {} at position {}; expected 0 to {}", expert[i], i,
          expert_count - 1);
    ++groups.counts[static_cast<size_t>(expert[i])];
  }
  std::vector<int64_t> next(groups.counts.size());
  std::exclusive_scan(groups.counts.begin(), groups.counts.end(), next.begin(), int64_t{0});
  for (int64_t i = 0; i < choices; ++i) {
    const int64_t place = next[static_cast<size_t>(expert[i])]++;
    groups.rows.data_as<int32_t>()[place] = static_cast<int32_t>(i / k);
    groups.places.data_as<int32_t>()[i] = static_cast<int32_t>(place);
  }
  return groups;
}

}  // namespace fovea
