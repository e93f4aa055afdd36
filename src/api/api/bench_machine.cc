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
  result.isa = instruction_set();
  result.threads = thread_count();
  result.fp32_flops = train::measured_flops(DType::f32, kSeconds);
  result.bf16_flops = train::measured_flops(DType::bf16, kSeconds);
  result.int8_operations = train::measured_int8_operations(kSeconds);
  result.one_thread_bandwidth = train::measured_bandwidth(1, kSeconds);
  result.bandwidth = train::measured_bandwidth(result.threads, kSeconds);
  return result;
}

}  // namespace fovea
