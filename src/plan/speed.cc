#include "plan/speed.h"

#include <algorithm>
#include <chrono>

#include "tensor/tensor.h"

namespace fovea {

double measured_flops(DType dtype, double seconds) {
  constexpr int64_t kSize = 768;  // large enough to run at full rate, small enough for the caches
  const Tensor a = full({kSize, kSize}, 0.5, dtype), b = full({kSize, kSize}, 0.25, dtype),
               c = empty({kSize, kSize});
  const auto run = [&] { kernels(a).gemm(c, a, b, {}, {kSize, kSize, kSize, false, true}); };
  run();
  double best = 0, spent = 0;
  while (spent < seconds) {
    const auto start = std::chrono::steady_clock::now();
    run();
    const double took =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    best = std::max(best, 2.0 * kSize * kSize * kSize / took);
    spent += took;
  }
  return best;
}

}  // namespace fovea
