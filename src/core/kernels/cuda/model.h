#pragma once

// A model of a GPU that computes on the host: each thread of a block is a fiber. It runs the
// threads in a random order, which differs from block to block, so that a missing barrier changes
// the results; and it makes other faults visible:
//   - the shared memory of a block begins with NaN, and ends at a page that cannot be accessed;
//   - a copy to shared memory sets the target to NaN, and arrives only when a thread waits for it;
//   - a barrier that some threads of a block or a warp never reach throws Internal.
// Memory of the model device is guarded too; see model_backend.cc.

#include <cstddef>
#include <cstdint>
#include <functional>

#include "base/dtype.h"

namespace fovea::cuda::model {

struct Grid {
  int threads = 1;  // of a block
  int blocks_x = 1, blocks_y = 1;
  size_t shared_bytes = 0;
  int block_x = 0, block_y = 0;  // the block that runs
};

// The thread that runs.
struct Now {
  int thread = 0;
  const Grid* grid = nullptr;
};

// Runs `body` in each thread of each block. `order`: the seed of the orders.
void run(Grid grid, uint64_t order, const std::function<void()>& body);

// What threads call.
const Now& now();
void* shared_memory(size_t bytes);  // throws Internal if the block has less
void barrier();
bool any_thread(bool x);
double shuffle_xor(double x, int mask);  // of a float or a double
void load_matrices(uint32_t (&r)[4], const bf16* row, bool transposed);
// Adds the 16 products of each sum in double, and rounds once. A GPU may round more often.
void mma(float (&d)[4], const uint32_t (&a)[4], const uint32_t (&b)[2]);
void copy_async(void* to, const void* from);
void copies_begun();
void wait_copies(int left);

}  // namespace fovea::cuda::model
