// The model of a GPU finds planted faults. Each fault is a kernel or a call with one mistake; its
// correct form beside it must pass.

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "base/error.h"
#include "kernels/cuda/cuda.h"
#include "kernels/cuda/dialect.h"
#include "kernels/cuda/model.h"
#include "tensor/host_values.h"

namespace fovea::cuda {
namespace {

using Floats = std::vector<float>;

constexpr int kCount = 256;

Floats numbers(size_t count) {
  Floats all(count);
  for (size_t i = 0; i < count; ++i) all[i] = static_cast<float>(i + 1);
  return all;
}

// Runs a kernel of one block, or several, and returns what it writes.
Floats run(const std::function<void(float*)>& kernel, uint64_t order, size_t shared_bytes,
           int threads = kCount, int blocks = 1) {
  Floats out(static_cast<size_t>(threads * blocks));
  model::run({.threads = threads, .blocks_x = blocks, .shared_bytes = shared_bytes}, order,
             [&] { kernel(out.data()); });
  return out;
}

bool same_bits(const Floats& a, const Floats& b) {
  return std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

// Whether the results differ between orders, are not those of the correct kernel, or a run is
// refused.
bool found(const std::function<void(float*)>& kernel, const Floats& expected,
           size_t shared_bytes = kCount * sizeof(float), int threads = kCount, int blocks = 1) {
  try {
    for (uint64_t order = 1; order <= 4; ++order)
      if (!same_bits(run(kernel, order, shared_bytes, threads, blocks), expected)) return true;
  } catch (const Error&) {
    return true;
  }
  return false;
}

struct Row {
  float values[kCount];
};

// ---- Missing barriers

// The reversal of a row by shared memory.
template <bool waits>
void reverse(float* out) {
  SHARED(Row, row);
  row.values[thread()] = static_cast<float>(thread());
  if (waits) barrier();
  out[thread()] = row.values[kCount - 1 - thread()];
}

// Two rounds in the same memory: the second store must wait for the readers of the first.
template <bool waits>
void two_rounds(float* out) {
  SHARED(Row, row);
  float sum = 0;
  for (int round = 0; round < 2; ++round) {
    row.values[thread()] = static_cast<float>(thread() * (round + 1));
    barrier();
    sum += row.values[(thread() + 1) % kCount];
    if (waits) barrier();
  }
  out[thread()] = sum;
}

// A sum by halves.
template <bool waits>
void sum_by_halves(float* out) {
  SHARED(Row, row);
  row.values[thread()] = static_cast<float>(thread());
  barrier();
  for (int half = kCount / 2; half > 0; half /= 2) {
    if (thread() < half) row.values[thread()] += row.values[thread() + half];
    if (waits) barrier();
  }
  barrier();
  out[thread()] = row.values[0];
}

// A broadcast of a number that one thread computes.
template <bool waits>
void broadcast(float* out) {
  SHARED(Row, row);
  if (thread() == 17) row.values[0] = 3;
  if (waits) barrier();
  out[thread()] = row.values[0];
}

// Blocks that add to one number without an order.
template <bool own>
void sum_over_blocks(float* out) {
  float* const to = own ? out + block_x() * kCount + thread() : out + thread();
  *to = *to * 0.5f + static_cast<float>(block_x());
}

TEST(GpuModel, FindsMissingBarriers) {
  const auto check = [](const auto& right, const auto& wrong, int blocks = 1) {
    const Floats expected = run(right, 9, sizeof(Row), kCount, blocks);
    EXPECT_FALSE(found(right, expected, sizeof(Row), kCount, blocks));
    EXPECT_TRUE(
        found(wrong, run(wrong, 9, sizeof(Row), kCount, blocks), sizeof(Row), kCount, blocks));
  };
  check(reverse<true>, reverse<false>);
  check(two_rounds<true>, two_rounds<false>);
  check(sum_by_halves<true>, sum_by_halves<false>);
  check(broadcast<true>, broadcast<false>);
  check(sum_over_blocks<true>, sum_over_blocks<false>, 3);
}

// ---- Barriers and shuffles that some threads do not reach

TEST(GpuModel, FindsDivergence) {
  const Floats expected = run([](float* out) { out[thread()] = 0; }, 1, 0);
  const auto diverges = [&](const std::function<void(float*)>& kernel) {
    EXPECT_TRUE(found(kernel, expected)) << "a barrier that some threads do not reach";
  };
  diverges([](float* out) {
    if (thread() < 100) barrier();
    out[thread()] = 0;
  });
  diverges([](float* out) {
    out[thread()] = 0;
    if (thread() == 5) return;
    barrier();
  });
  diverges([](float* out) { out[thread()] = thread() % 32 < 16 ? 0 * shuffle_xor(1.0f, 1) : 0; });
  diverges([](float* out) {
    if (thread() < 32)
      out[thread()] = 0 * shuffle_xor(1.0f, 16);
    else
      barrier();
  });
}

// ---- Shared memory that nothing has written

TEST(GpuModel, SharedMemoryBeginsWithNaN) {
  const auto first = [](float* out) {
    SHARED(Row, row);
    out[thread()] = row.values[thread()];
  };
  for (const float x : run(first, 1, sizeof(Row))) EXPECT_TRUE(std::isnan(x));
  // Also that of the second block, after the first has written.
  const auto left = [](float* out) {
    SHARED(Row, row);
    out[block_x() * kCount + thread()] = row.values[thread()];
    barrier();
    row.values[thread()] = 1;
  };
  for (const float x : run(left, 1, sizeof(Row), kCount, 2)) EXPECT_TRUE(std::isnan(x));
  // A sum over more elements than were stored.
  const auto partly = [](float* out) {
    SHARED(Row, row);
    if (thread() < 200) row.values[thread()] = 1;
    barrier();
    float sum = 0;
    for (int i = 0; i < kCount; ++i) sum += row.values[i];
    out[thread()] = sum;
  };
  EXPECT_TRUE(std::isnan(run(partly, 1, sizeof(Row))[0]));
}

// ---- Asynchronous copies

struct alignas(16) Tile {
  float values[kCount];
};

TEST(GpuModel, FindsCopiesThatAreReadTooEarly) {
  const Floats from = numbers(kCount);
  alignas(16) static float source[kCount];
  std::memcpy(source, from.data(), sizeof source);
  // waits: for its own copies; meets: all threads have waited.
  const auto copied = [](bool begins, int left, bool meets) {
    return [=](float* out) {
      SHARED(Tile, tile);
      if (thread() < kCount / 4) copy_async(tile.values + 4 * thread(), source + 4 * thread());
      if (begins) copies_begun();
      if (left == 0) wait_copies<0>();
      if (left == 1) wait_copies<1>();
      if (meets) barrier();
      out[thread()] = tile.values[thread()];
    };
  };
  EXPECT_FALSE(found(copied(true, 0, true), from, sizeof(Tile)));
  EXPECT_TRUE(found(copied(true, 0, false), from, sizeof(Tile)));  // no barrier
  EXPECT_TRUE(found(copied(true, 1, true), from, sizeof(Tile)));   // one group may be under way
  EXPECT_TRUE(found(copied(true, -1, true), from, sizeof(Tile)));  // no wait
  EXPECT_TRUE(found(copied(false, 0, true), from, sizeof(Tile)));  // no group
}

// ---- Writes and reads outside arrays

TEST(GpuModel, FindsAccessesOutsideArrays) {
  EXPECT_TRUE(found(
      [](float*) {
        SHARED(Row, row);
        row.values[0] = 1;
      },
      Floats(kCount), 8));
  const auto beyond = [](float* out) {
    SHARED(Row, row);
    volatile float* const values = row.values;
    out[thread()] = values[thread() + kCount];
  };
  EXPECT_DEATH(run(beyond, 1, sizeof(Row)), "");
  // An entry that is called with one element too many.
  const Device& device = cuda_model_device();
  const Tensor x = full({64}, 2.0).to(device), y = full({64}, 0.0).to(device);
  cuda::kernels(DType::f32).scale(y, x, 3, 64);
  EXPECT_EQ(to_floats(y), Floats(64, 6));
  cuda::kernels(DType::f32).scale(y, x, 3, 65);
  EXPECT_THROW(to_floats(y), Error);
}

// ---- The host

TEST(GpuModel, ShowsWhereTheHostDoesNotWait) {
  const Device& device = cuda_model_device();
  const Tensor x = full({64}, 2.0).to(device);
  cuda::kernels(DType::f32).scale(x, x, 3, 64);
  EXPECT_DEATH(printf("%f", static_cast<double>(*static_cast<const float*>(x.data()))), "");
  EXPECT_EQ(to_floats(x), Floats(64, 6));
  EXPECT_DEATH(*static_cast<float*>(x.data()) = 1, "");
  EXPECT_THROW(x.data_as<float>(), Error);
}

}  // namespace
}  // namespace fovea::cuda
