#pragma once

#include <cstdint>
#include <string>

#include "fovea/train.h"

namespace fovea {

struct TrainBench {
  std::string preset, precision, isa;
  int threads = 0;
  int64_t batch = 0, context = 0, steps = 0;
  double milliseconds_per_step = 0;  // median
  double tokens_per_second = 0;
  double flops_per_step = 0;  // matrix products and attention, forward and backward
  double peak_flops = 0;      // measured on this machine in this precision just before
  uint64_t peak_bytes = 0;    // resident
};

// Training steps of a preset on made-up text, timed one by one. Batch 0 = the benchmark's own:
// 12 for nano, 16 for baby.
TrainBench bench_training(const std::string& preset, Precision precision, int64_t steps,
                          int64_t batch = 0);

}  // namespace fovea
