// The entries of products.

#include "base/error.h"
#include "kernels/cuda/start.h"
#include "kernels/layout/blocks.h"

namespace fovea::cuda {
namespace {

// The first row of each unit, and the end.
std::vector<int64_t> starts_of(const Units& units, int64_t rows) {
  std::vector<int64_t> starts;
  for (int64_t unit = 0; unit <= units.count; ++unit) starts.push_back(units.start(unit, rows));
  return starts;
}

Launch over_tiles(int64_t m, int64_t n, int rows, int columns, size_t bytes) {
  return {.blocks_x = static_cast<int>((n + columns - 1) / columns),
          .blocks_y = static_cast<int>((m + rows - 1) / rows),
          .shared_bytes = bytes};
}
Launch over_tiles(int64_t m, int64_t n, const MmaShape& shape) {
  return over_tiles(m, n, shape.rows(), shape.columns(), shape.bytes());
}

}  // namespace

void gemm(Out c, In a, In b, In bias, const GemmShape& shape) {
  const auto& [m, n, k, transpose_a, transpose_b, units, second, kept] = shape;
  check(units.count == 1 || (transpose_a && !transpose_b && !bias.data),
        "gemm: {} units; expected 1, or a [k, m], b [k, n] and no bias", units.count);
  if (m == 0 || n == 0) return;
  const GemmOperands operands = {m, n, k, transpose_a, transpose_b, second.a, second.b, second.k};
  const bool halves = a.dtype == DType::bf16 && b.dtype == DType::bf16;
  const bool wide = is_wide(a, transpose_a ? m : k) && is_wide(b, transpose_b ? k : n) &&
                    (second.k == 0 || (is_wide(second.a, second.k) &&
                                       is_wide(second.b, transpose_b ? second.k : n)));
  const Launch chains = over_tiles(m, n, kTile, kTile, kTileBytes);
  if (units.count == 1) {
    if (!halves) return launch(kernel::gemm_chains, chains, c, a, b, bias, operands);
    if (m <= kFewRows.rows())
      return launch(kernel::gemm_mma_few_rows, over_tiles(m, n, kFewRows), c, a, b, bias, operands,
                    wide);
    return launch(kernel::gemm_mma, over_tiles(m, n, kWholeTiles), c, a, b, bias, operands, wide);
  }
  const std::vector<int64_t> starts = starts_of(units, k);
  const OnDevice on_device{std::span<const int64_t>(starts)};
  if (halves)
    launch(kernel::gemm_mma_units, over_tiles(m, n, kWholeTiles), c, a, b, operands,
           on_device.data(), units.count, wide);
  else
    launch(kernel::gemm_units, chains, c, a, b, operands, on_device.data(), units.count);
}

namespace {

PackedWeights for_kernels(const PackedMatrix& w) {
  PackedWeights weights = {.format = w.format,
                           .outputs = w.outputs,
                           .width = w.width,
                           .group = w.group,
                           .panels = w.panels,
                           .scales = w.scales,
                           .panel_bytes = panel_bytes(w)};
  if (!is_block_type(w.format)) return weights;
  const BlockFormat& blocks = block_format(w.format);
  weights.group = blocks.group;
  weights.block = blocks.block;
  weights.record_bytes = record_bytes(blocks);
  weights.low = blocks.low;
  weights.high = blocks.high;
  weights.offset = blocks.offset;
  weights.kind = blocks.scales;
  weights.has_table = blocks.table != nullptr;
  if (blocks.table != nullptr) std::copy_n(blocks.table, 16, weights.table);
  return weights;
}

}  // namespace

void unpack_rows(Out y, const PackedMatrix& w, Indices rows, int64_t count) {
  if (count > 0 && w.width > 0)
    launch(kernel::unpack_rows, over(count * w.width), y, for_kernels(w), rows.data, count);
}

namespace {

// Room for numbers of a dtype.
class Numbers {
 public:
  Numbers(int64_t count, DType dtype)
      : memory_(static_cast<size_t>(std::max<int64_t>(1, count)) * size_of(dtype)), dtype_(dtype) {}
  Out out() const { return {memory_.data(), dtype_}; }
  In in() const { return {memory_.data(), dtype_}; }

 private:
  OnDevice<char> memory_;
  DType dtype_;
};

}  // namespace

// Unpacks the whole matrix: a product of a few rows reads the weights twice.
void packed_gemm(Out c, In a, const PackedMatrix& w, In bias, const GemmShape& shape) {
  check_packed_gemm(w, shape);
  const Numbers unpacked(w.outputs * w.width, a.dtype);
  unpack_rows(unpacked.out(), w, nullptr, w.outputs);
  gemm(c, a, unpacked.in(), bias, shape);
}

// Weights and activations are rounded to bf16, unless the weights are fp32.
void packed_linear(std::span<const PackedProduct> products, In x, int64_t rows) {
  if (products.empty() || rows == 0) return;
  const int64_t width = products[0].weight.width;
  const DType dtype = products[0].weight.format == WeightFormat::f32 ? DType::f32 : DType::bf16;
  const Numbers rounded(rows * width, dtype);
  Elementwise<kernel::convert>::run(rounded.out(), x, rows * width);
  for (const auto& [y, bias, weight, activation, residual] : products) {
    const GemmShape shape = {rows, weight.outputs, width, false, true};
    if (!activation && residual.data == nullptr) {
      packed_gemm(y, rounded.in(), weight, bias, shape);
      continue;
    }
    const int64_t size = rows * weight.outputs;
    const Numbers sums(size, DType::f32);
    packed_gemm(sums.out(), rounded.in(), weight, bias, shape);
    if (activation) Elementwise<kernel::activation>::run(sums.out(), sums.in(), *activation, size);
    if (residual.data != nullptr)
      Elementwise<kernel::add>::run(y, sums.in(), residual, size);
    else
      Elementwise<kernel::convert>::run(y, sums.in(), size);
  }
}

}  // namespace fovea::cuda
