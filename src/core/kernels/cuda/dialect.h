#pragma once

// The language of the kernels: C++ for one thread of a block of threads. nvcc compiles it for a
// GPU; the C++ compiler of the library compiles the same files for a model of a GPU (model.h), on
// which every machine tests them.
//
//   KERNEL(name)(parameters) { ... }   the code of a kernel in kernels.inc
//   DEVICE                             a function that kernels call
//   UNROLLED for (...)                 a loop of a known length over arrays in registers
//   SHARED(Type, name);                the shared memory of the block, a struct; launch() gets its
//                                      size
//   thread(), threads()                the index of the thread in its block, and their number
//   block_x(), block_y(), blocks_x()   the index of the block, and their number
//   barrier()                          waits for all threads of the block
//   any_thread(x)                      whether x holds for a thread of the block; a barrier() too
//   shuffle_xor(x, mask)               x of lane (lane ^ mask) of the warp; all 32 lanes call it
//   load_matrices<transposed>(r, row)  loads four matrices of 8 x 8 bf16 from shared memory: lane i
//                                      gives row i % 8 of matrix i / 8 and gets, of each matrix,
//                                      the elements 2 (i % 4) and 2 (i % 4) + 1 of row i / 4, or of
//                                      column i / 4 if `transposed`
//   mma(d, a, b)                       d [16, 8] += a [16, 16] b [16, 8] in bf16; the lanes of the
//                                      warp hold the elements as those of PTX's mma.m16n8k16
//   copy_async(to, from)               begins to copy 16 bytes to shared memory
//   copies_begun(), wait_copies(n)     ends a group of copies; waits until at most n groups are
//                                      under way. The other threads see them after a barrier().
//
// Sums have one order, and a product is added by an explicit multiply_add() (fused) or not at all:
// nothing is contracted, flushed to zero or approximated, so that both compilers give the bits of
// the CPU's kernels.

#include <bit>
#include <cmath>
#include <cstdint>

#include "kernels/cuda/kernel.h"

#ifdef __CUDACC__

#define DEVICE __device__ __forceinline__
#define UNROLLED _Pragma("unroll")
// At least one block runs at a time: more registers instead of spills.
#define KERNEL(name) extern "C" __global__ void __launch_bounds__(kernel::name.threads, 1) name
#define SHARED(Type, name)                                        \
  extern __shared__ __align__(16) unsigned char shared_memory_[]; \
  Type& name = *reinterpret_cast<Type*>(shared_memory_)

namespace fovea::cuda {

DEVICE int thread() { return static_cast<int>(threadIdx.x); }
DEVICE int threads() { return static_cast<int>(blockDim.x); }
DEVICE int block_x() { return static_cast<int>(blockIdx.x); }
DEVICE int block_y() { return static_cast<int>(blockIdx.y); }
DEVICE int blocks_x() { return static_cast<int>(gridDim.x); }
DEVICE void barrier() { __syncthreads(); }
DEVICE bool any_thread(bool x) { return __syncthreads_or(x) != 0; }
DEVICE uint32_t bits_of(float x) { return __float_as_uint(x); }
DEVICE float number_of(uint32_t bits) { return __uint_as_float(bits); }
template <class Number>
DEVICE Number shuffle_xor(Number x, int mask) {
  return __shfl_xor_sync(0xffffffffu, x, mask);
}

// The address of shared memory in instructions.
DEVICE uint32_t shared_address(const void* p) {
  return static_cast<uint32_t>(__cvta_generic_to_shared(p));
}
template <bool transposed>
DEVICE void load_matrices(uint32_t (&r)[4], const bf16* row) {
  if constexpr (transposed)
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                 : "r"(shared_address(row)));
  else
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                 : "r"(shared_address(row)));
}
DEVICE void mma(float (&d)[4], const uint32_t (&a)[4], const uint32_t (&b)[2]) {
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, "
      "{%8, %9}, {%0, %1, %2, %3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

DEVICE void copy_async(void* to, const void* from) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(shared_address(to)), "l"(from)
               : "memory");
}
DEVICE void copies_begun() { asm volatile("cp.async.commit_group;" ::: "memory"); }
template <int n>
DEVICE void wait_copies() {
  asm volatile("cp.async.wait_group %0;" ::"n"(n) : "memory");
}

}  // namespace fovea::cuda

#else

#include "kernels/cuda/model.h"

#define DEVICE inline
#define UNROLLED
#define KERNEL(name) void model_kernels::name
// NOLINTNEXTLINE: a type and a name stand without parentheses.
#define SHARED(Type, name) Type& name = *static_cast<Type*>(model::shared_memory(sizeof(Type)))

namespace fovea::cuda {

inline int thread() { return model::now().thread; }
inline int threads() { return model::now().grid->threads; }
inline int block_x() { return model::now().grid->block_x; }
inline int block_y() { return model::now().grid->block_y; }
inline int blocks_x() { return model::now().grid->blocks_x; }
inline void barrier() { model::barrier(); }
inline bool any_thread(bool x) { return model::any_thread(x); }
inline uint32_t bits_of(float x) { return std::bit_cast<uint32_t>(x); }
inline float number_of(uint32_t bits) { return std::bit_cast<float>(bits); }
template <class Number>
Number shuffle_xor(Number x, int mask) {
  return static_cast<Number>(model::shuffle_xor(x, mask));
}
template <bool transposed>
void load_matrices(uint32_t (&r)[4], const bf16* row) {
  model::load_matrices(r, row, transposed);
}
inline void mma(float (&d)[4], const uint32_t (&a)[4], const uint32_t (&b)[2]) {
  model::mma(d, a, b);
}
inline void copy_async(void* to, const void* from) { model::copy_async(to, from); }
inline void copies_begun() { model::copies_begun(); }
template <int n>
inline void wait_copies() {
  model::wait_copies(n);
}

}  // namespace fovea::cuda

#endif

namespace fovea::cuda {

DEVICE float multiply_add(float a, float b, float c) { return fmaf(a, b, c); }

DEVICE int lane() { return thread() % kWarp; }
DEVICE int warp() { return thread() / kWarp; }

// The first element of this thread, and the distance to its next one, if all threads of all blocks
// share the elements of an array.
DEVICE int64_t first_element() { return static_cast<int64_t>(block_x()) * threads() + thread(); }
DEVICE int64_t element_stride() { return static_cast<int64_t>(blocks_x()) * threads(); }

DEVICE float get(In x, int64_t i) {
  return x.dtype == DType::bf16 ? widen(static_cast<const bf16*>(x.data)[i])
                                : static_cast<const float*>(x.data)[i];
}
// y[i] = value, or += if y.add, rounded to y's dtype.
DEVICE void put(Out y, int64_t i, float value) {
  if (y.dtype == DType::bf16) {
    bf16& to = static_cast<bf16*>(y.data)[i];
    to = narrow(y.add ? widen(to) + value : value);
  } else {
    float& to = static_cast<float*>(y.data)[i];
    to = y.add ? to + value : value;
  }
}

}  // namespace fovea::cuda
