#include "base/machine.h"
#include "base/threads.h"
#include "fovea/bench.h"
#include "kernels/isa.h"
#include "plan/speed.h"

namespace fovea {

MachineBench bench_machine() {
  constexpr double kSeconds = 0.2;  // for each rate
  MachineBench result;
  result.cpu = cpu_name();
  result.isa = active_isa();
  result.threads = thread_count();
  result.fp32_flops = measured_flops(DType::f32, kSeconds);
  result.bf16_flops = measured_flops(DType::bf16, kSeconds);
  result.int8_operations = measured_int8_operations(kSeconds);
  result.one_thread_bandwidth = measured_bandwidth(1, kSeconds);
  result.bandwidth = measured_bandwidth(result.threads, kSeconds);
  return result;
}

}  // namespace fovea
