#pragma once

// The names and parameters of the kernels of the GPU device.

#include <cstdint>

#include "kernels/kernels.h"
#include "kernels/layout/blocks.h"
#include "kernels/layout/kv_page.h"

namespace fovea::cuda {

inline constexpr int kWarp = 32;  // threads of a warp

// The operands of a product, whose elements are at a(i, l) = a[i k + l], or a[l m + i] if
// transposed, and b(l, j) = b[l n + j], or b[j k + l] if transposed; then, with second_k > 0, those
// of a second pair over which each sum continues.
struct GemmOperands {
  int64_t m = 0, n = 0, k = 0;
  bool transpose_a = false, transpose_b = false;
  In second_a = {}, second_b = {};
  int64_t second_k = 0;
};

// The keys that a query sees: at most two intervals; see Mask::intervals().
struct SeenKeys {
  int32_t begin[Mask::kMostIntervals] = {}, end[Mask::kMostIntervals] = {};
};

// AttentionShape for kernels.
struct AttentionCall {
  int64_t batch = 0, queries = 0, keys = 0, capacity = 0, heads = 0, kv_heads = 0;
  int64_t width = 0, value_width = 0;
  float factor = 1;  // of the products of queries and keys: scores to base 2
  float scale = 1, softcap = 0;
  // The keys that query t of batch row b sees: seen[b * seen_stride + t].
  const SeenKeys* seen = nullptr;
  int64_t seen_stride = 0;
  Dropout dropout = {};
  int64_t first_dropped_row = 0;
  In bias = {};
  int64_t bias_stride = 0, bias_origin = 0, bias_tables = 1;
  In sinks = {};
};

// What the backward pass of attention reads.
struct AttentionInputs {
  In dy, q, k, v, y, lse;
};

// PagedAttention for kernels. Spans have their number of queries, keys and so on.
struct PagedCall {
  AttentionCall call;
  PageLayout keys, values;
  int64_t key_head_bytes = 0, key_scales_at = 0, value_head_bytes = 0, value_scales_at = 0;
  bool values_in_keys = false;
  const void *const *key_pages = nullptr, *const *value_pages = nullptr;  // of all spans
};
struct PagedSpan {
  int64_t row = 0, queries = 0, keys = 0, bias_origin = 0;
  int64_t pages = 0;  // index of the first page
  int64_t seen = 0;   // index of the keys that the first query sees
};
// What a block computes: 64 rows of a span and of a key-value head, 64 columns of the values.
struct PagedBlock {
  int32_t span = 0, kv_head = 0, first_row = 0, column = 0;
};

// PackedMatrix for kernels. The block types have the numbers of BlockFormat (layout/blocks.h); int8
// and int4, whose groups may have other sizes, have only `group` of them.
struct PackedWeights {
  WeightFormat format = WeightFormat::f32;
  int64_t outputs = 0, width = 0, group = 0;
  const void* panels = nullptr;
  const void* scales = nullptr;
  int64_t panel_bytes = 0;
  int64_t block = 0, record_bytes = 0;
  int32_t low = 0, high = 0, offset = 0;
  BlockScales kind = BlockScales::half;
  bool has_table = false;
  int8_t table[16] = {};
};

// PageRows for kernels.
struct PagePut {
  PageLayout layout;
  int64_t head_bytes = 0, scales_at = 0;
  PagePart part = PagePart::keys;
  void* page = nullptr;
  int64_t token = 0, count = 0;
  In x;
};

// A kernel, by which the host starts it.
template <class... Parameters>
struct KernelOf {
  const char* name;
  int threads;  // of a block
};

template <class F>
struct KernelType;
template <class... Parameters>
struct KernelType<void(Parameters...)> {
  using Type = KernelOf<Parameters...>;
};

namespace kernel {

#define GPU_KERNEL(name, threads, ...) \
  inline constexpr KernelType<void(__VA_ARGS__)>::Type name = {#name, threads};
#include "kernels/cuda/kernels.inc"
#undef GPU_KERNEL

}  // namespace kernel

// The functions of the model of a GPU.
namespace model_kernels {

#define GPU_KERNEL(name, threads, ...) void name(__VA_ARGS__);
#include "kernels/cuda/kernels.inc"
#undef GPU_KERNEL

}  // namespace model_kernels
}  // namespace fovea::cuda
