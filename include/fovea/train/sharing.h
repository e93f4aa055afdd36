#pragma once

#include <cstdint>

namespace fovea::train {

// What each of several processes has only its part of. optimizer: the moments and the gradients
// (stages 1 and 2 of ZeRO; Rajbhandari et al. 2020).
enum class Sharded { nothing, optimizer };
// How several processes send gradients. bf16: half the bytes; the rounding errors of a step are
// added in the next one (Seide et al. 2014).
enum class GradientPrecision { fp32, bf16 };

// How the processes of a job share the steps of a run (docs/across-machines.md).
struct SharingOptions {
  Sharded shard = Sharded::nothing;
  GradientPrecision gradients = GradientPrecision::fp32;
  // Each process takes this many steps by itself, on its share of the batches; their mean change is
  // then taken as the gradient of an outer step with Nesterov's momentum (Douillard et al. 2023).
  // 1 = each step is that of the whole batch.
  int64_t sync_every = 1;
  double outer_rate = 0.7, outer_momentum = 0.5;  // of the outer step; 1 and 0 = the mean weights
  // A step that takes more seconds, and more than 5 usual steps, ends the job.
  double stall_timeout = 60;
};

}  // namespace fovea::train
