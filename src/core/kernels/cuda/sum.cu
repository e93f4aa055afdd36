// Sums of all elements, in double; see cpu/reduce.cc.

#include "kernels/cuda/lanes.cuh"
#include "kernels/sum_block.h"

namespace fovea::cuda {

// 16 threads have the 16 partial sums of a block of kSumBlock elements.
KERNEL(sum_of_blocks)(double* partial, In x, bool squares, int64_t size) {
  constexpr int kPartialSums = 16;
  const int64_t blocks = (size + kSumBlock - 1) / kSumBlock;
  const int64_t groups = element_stride() / kPartialSums, own = thread() % kPartialSums;
  // All lanes of a warp go on as long as one of its two groups does.
  for (int64_t block = first_element() / kWarp * 2; block < blocks; block += groups) {
    const int64_t mine = block + lane() / kPartialSums;
    const int64_t begin = mine * kSumBlock;
    const int64_t end = begin + kSumBlock < size ? begin + kSumBlock : size;
    double sum = 0;
    for (int64_t i = begin + own; i < end; i += kPartialSums) {
      const double value = get(x, i);
      sum += squares ? value * value : value;
    }
    sum = sum_over<kPartialSums>(sum);
    if (own == 0 && mine < blocks) partial[mine] = sum;
  }
}

KERNEL(add_partial_sums)(double* total, const double* partial, int64_t count) {
  double sum = 0;
  for (int64_t i = 0; i < count; ++i) sum += partial[i];
  *total = sum;
}

}  // namespace fovea::cuda
