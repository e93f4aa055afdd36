#pragma once

// How the entries of the table start their kernels, and the entries themselves, which are in
// several files.

#include <algorithm>
#include <tuple>
#include <type_traits>
#include <vector>

#include "kernels/cuda/backend.h"
#include "kernels/cuda/tile_sizes.h"

namespace fovea::cuda {

#define KERNEL(name, ...) std::type_identity_t<__VA_ARGS__> name;
#include "kernels/entries.inc"
#undef KERNEL

// Blocks that share elements, one for each of 256 of them at most. Any number of them and of their
// threads computes all elements.
inline Launch over(int64_t elements) {
  constexpr int64_t kElements = 256, kMostBlocks = 2048;  // more than a GPU runs at once
  const int64_t blocks = (elements + kElements - 1) / kElements;
  return {.blocks_x = static_cast<int>(std::min(blocks, kMostBlocks))};
}

// The function of an entry over `size` elements: the kernel of the same name, with the same
// parameters, of which the last one is the size.
template <auto& kernel>
struct Elementwise;
template <class... Parameters, const KernelOf<Parameters...>& kernel>
struct Elementwise<kernel> {
  static void run(Parameters... parameters) {
    const int64_t size = std::get<sizeof...(Parameters) - 1>(std::tie(parameters...));
    if (size > 0) launch(kernel, over(size), parameters...);
  }
};

// A warp for each row.
inline Launch over_rows(int64_t rows) { return over(rows * kWarp); }

// Tiles of kTile that cover `count`.
inline int64_t tiles_of(int64_t count) { return (count + kTile - 1) / kTile; }

// Whether 16 bytes of the rows can be copied at once.
inline bool is_wide(In x, int64_t row) {
  return reinterpret_cast<uintptr_t>(x.data) % 16 == 0 && row % 8 == 0;
}

}  // namespace fovea::cuda
