#include <limits>

#include "base/error.h"
#include "ops/ops.h"

namespace fovea {

Groups group_by_expert(const Tensor& experts, int64_t expert_count) {
  check(experts.rank() == 2 && experts.dtype() == DType::i32 && expert_count > 0 &&
            experts.size() <= std::numeric_limits<int32_t>::max(),
        "group_by_expert: choices are {} {} of {} experts; expected int32 [R, k], fewer than 2^31 "
        "choices and at least one expert",
        name_of(experts.dtype()), experts.shape(), expert_count);
  const Kernels& k = kernels(experts);
  const int64_t wrong = k.first_outside(experts, experts.size(), expert_count);
  if (wrong >= 0)
    fail(ErrorKind::InvalidArgument, "group_by_expert: expert {} at position {}; expected 0 to {}",
         experts.to(cpu_device()).data_as<int32_t>()[wrong], wrong, expert_count - 1);
  Groups groups{empty({experts.size()}, DType::i32, experts.device()), empty_like(experts),
                std::vector<int64_t>(static_cast<size_t>(expert_count))};
  k.group_by_expert(groups.rows, groups.places, groups.counts.data(), experts, experts.dim(0),
                    experts.dim(1), expert_count);
  return groups;
}

}  // namespace fovea
