#include "ops/packed.h"

#include <algorithm>
#include <atomic>
#include <mutex>
#include <optional>

#include "base/error.h"
#include "base/threads.h"
#include "ops/common.h"
#include "tensor/host_values.h"
#include "tensor/tape.h"

namespace fovea {
namespace {

// The size of a part of a weight that is packed for one product: it stays in the CPU's cache.
constexpr int64_t kPartBytes = int64_t{8} << 20;
// The size of a thread's piece of it: small, so that threads finish at the same time.
constexpr int64_t kPieceBytes = int64_t{512} << 10;

int64_t bytes_of(const PackedMatrix& w) { return panels_of(w) * panel_bytes(w) + scale_bytes(w); }

// Returns the number of outputs whose panels take about `bytes`.
int64_t outputs_in(int64_t bytes, const PackedMatrix& w) {
  const int64_t panels = bytes * panels_of(w) / std::max<int64_t>(1, bytes_of(w));
  return std::max<int64_t>(1, panels) * kPanelOutputs;
}

PackedMatrix with_outputs(PackedMatrix w, int64_t outputs) {
  w.outputs = outputs;
  return w;
}

}  // namespace

// A matrix in panels, and their memory.
struct PackedWeight::Panels {
  explicit Panels(const PackedMatrix& sizes)
      : matrix(sizes),
        panels(empty({panels_of(sizes) * panel_bytes(sizes)}, DType::u8)),
        scales(empty({scale_bytes(sizes) / 2}, DType::f16)) {
    matrix.panels = panels.data();
    matrix.scales = scales.data_as<uint16_t>();
  }

  // Packs the outputs [begin, end) from the rows from `first` on.
  int64_t pack(const WeightRows& rows, int64_t first, int64_t begin, int64_t end) const {
    const PackedMatrix part = outputs_of(matrix, begin, end);
    return rows.pack(part, first, const_cast<void*>(part.panels),
                     const_cast<uint16_t*>(part.scales));
  }
  // Packs all outputs from the rows from `first` on, on all threads.
  void pack(const WeightRows& rows, int64_t first) const {
    const int64_t step = outputs_in(kPieceBytes, matrix);
    parallel_tasks((matrix.outputs + step - 1) / step, [&](int64_t piece) {
      const int64_t begin = piece * step, end = std::min(matrix.outputs, begin + step);
      pack(rows, first + begin, begin, end);
    });
  }

  PackedMatrix matrix;
  Tensor panels, scales;  // u8, f16
};

struct PackedWeight::Late {
  std::mutex mutex;                        // guards `rows` and `memory`
  std::shared_ptr<const WeightRows> rows;  // null if the weight is packed
  std::optional<Panels> memory;
  std::atomic<bool> packed = false;  // set last
  std::atomic<bool> used = false;
  bool stays = false;
};

PackedWeight::PackedWeight(const Tensor& weight, WeightFormat format, int64_t group) {
  matrix_ = {format, weight.dim(0), weight.dim(1),
             has_integers(format) ? group_size(group, weight.dim(1)) : 0};
  const Panels memory(matrix_);
  pack(matrix_, weight.to(cpu_device()), memory.panels.data(), memory.scales.data_as<uint16_t>());
  set_panels(memory.panels, memory.scales);
}

PackedWeight::PackedWeight(const Tensor& rows, const Tensor& scales, int64_t width, int64_t group) {
  const bool int4 = rows.dtype() == DType::u8;
  matrix_ = {int4 ? WeightFormat::int4 : WeightFormat::int8, rows.dim(0), width,
             group_size(group, width)};
  const Panels memory(matrix_);
  pack_quantized(matrix_, rows.data_as<uint8_t>(), scales.data_as<uint16_t>(), memory.panels.data(),
                 memory.scales.data_as<uint16_t>());
  set_panels(memory.panels, memory.scales);
}

PackedWeight::PackedWeight(WeightFormat format, int64_t outputs, int64_t width, int64_t group,
                           std::unique_ptr<const WeightRows> rows)
    : matrix_{format, outputs, width, has_integers(format) ? group_size(group, width) : 0},
      late_(std::make_shared<Late>()) {
  late_->rows = std::move(rows);
}

size_t PackedWeight::bytes() const { return static_cast<size_t>(bytes_of(matrix_)); }

void PackedWeight::set_panels(const Tensor& panels, const Tensor& scales) {
  panels_ = panels;
  scales_ = scales;
  matrix_.panels = panels_.data();
  matrix_.scales = static_cast<const uint16_t*>(scales_.data());
  matrix_.device = panels_.device().number;
}

void PackedWeight::begin_packing() const { late_->memory.emplace(matrix_); }

int64_t PackedWeight::pack_part(int64_t begin, int64_t end) const {
  const int64_t first = begin * kPanelOutputs;
  const int64_t last = std::min(matrix_.outputs, end * kPanelOutputs);
  const int64_t nonfinite = late_->memory->pack(*late_->rows, first, first, last);
  late_->rows->release(first, last - first);
  return nonfinite;
}

int64_t PackedWeight::count_nonfinite(int64_t begin, int64_t end) const {
  const int64_t first = begin * kPanelOutputs;
  const int64_t last = std::min(matrix_.outputs, end * kPanelOutputs);
  return late_->rows->count_nonfinite(matrix_, first, last - first);
}

void PackedWeight::end_packing() const {
  late_->rows = nullptr;
  late_->packed.store(true, std::memory_order_release);
}

const PackedMatrix& PackedWeight::packed() const {
  if (!late_) return matrix_;
  if (!late_->packed.load(std::memory_order_acquire)) {
    const std::lock_guard lock(late_->mutex);
    if (late_->rows) {
      begin_packing();
      // Small pieces: the rows of a piece are released as soon as it is packed.
      const int64_t panels = panels_of(matrix_),
                    step = outputs_in(kPieceBytes, matrix_) / kPanelOutputs;
      parallel_tasks((panels + step - 1) / step, [&](int64_t piece) {
        pack_part(piece * step, std::min(panels, (piece + 1) * step));
      });
      end_packing();
    }
  }
  return late_->memory->matrix;
}

bool PackedWeight::packed_for_use() const {
  if (!late_ || late_->packed.load(std::memory_order_acquire)) return true;
  if (late_->stays || !late_->used.exchange(true)) return false;
  packed();
  return true;
}

void PackedWeight::stay_in_rows() {
  if (late_) late_->stays = true;
}

std::shared_ptr<const WeightRows> PackedWeight::rows() const {
  if (!late_ || late_->packed.load(std::memory_order_acquire)) return nullptr;
  const std::lock_guard lock(late_->mutex);
  return late_->rows;
}

PackedWeight PackedWeight::to(const Device& device) const {
  PackedWeight y = *this;
  if (late_) packed();
  y.late_ = nullptr;
  y.set_panels((late_ ? late_->memory->panels : panels_).to(device),
               (late_ ? late_->memory->scales : scales_).to(device));
  return y;
}

bool PackedWeight::multiplies_exactly() const { return exact_ || recording(); }

PackedWeight::Quantized PackedWeight::quantized() const {
  check(is_quantized(matrix_.format), "quantized: the weights are not int8 or int4");
  const DType dtype = matrix_.format == WeightFormat::int4 ? DType::u8 : DType::i8;
  const PackedWeight host = to(cpu_device());
  Quantized q = {empty({matrix_.outputs, quantized_row_bytes(matrix_)}, dtype),
                 empty({matrix_.outputs, groups_of(matrix_)}, DType::f16)};
  unpack_quantized(host.matrix_, q.rows.data_as<uint8_t>(), q.scales.data_as<uint16_t>());
  return q;
}

Tensor PackedWeight::floats() const {
  Tensor y = empty({matrix_.outputs, matrix_.width}, DType::f32, device());
  kernels(y).unpack_rows(y, packed(), nullptr, matrix_.outputs);
  return y;
}

void multiply_late(const Tensor& y, const Tensor& x, const PackedLayer& layer) {
  const auto& [weight, bias, kind, residual] = layer;
  const std::shared_ptr<const WeightRows> rows = weight.rows();
  if (!rows) {
    const PackedProduct product{y, bias, weight.packed(), kind, residual};
    return kernels(x).packed_linear({&product, 1}, x, rows_of(x).count);
  }
  const PackedMatrix& w = weight.matrix();
  const int64_t count = rows_of(x).count, step = outputs_in(kPartBytes, w);
  const auto size = static_cast<int64_t>(size_of(y.dtype()));
  const bool whole = step >= w.outputs;
  for (int64_t begin = 0; begin < w.outputs; begin += step) {
    const int64_t outputs = std::min(step, w.outputs - begin);
    const PackedWeight::Panels part(with_outputs(w, outputs));
    part.pack(*rows, begin);
    const Tensor z = whole ? y : empty({count, outputs}, y.dtype());
    const PackedProduct product{z, bias ? bias.rows(begin, begin + outputs) : bias, part.matrix,
                                kind, whole ? residual : Tensor()};
    kernels(x).packed_linear({&product, 1}, x, count);
    for (int64_t r = 0; !whole && r < count; ++r)
      copy_bytes(y, (r * w.outputs + begin) * size, z, r * outputs * size, outputs * size);
  }
  if (!whole && residual) kernels(y).add(y, y, residual, y.size());
}

std::vector<Tensor> linear(const Tensor& x, const std::vector<PackedLayer>& layers, DType out) {
  std::vector<Tensor> results;
  std::vector<PackedProduct> products;
  results.reserve(layers.size());
  products.reserve(layers.size());
  for (const PackedLayer& layer : layers) {
    const auto& [weight, bias, kind, residual] = layer;
    if (weight.multiplies_exactly()) {
      Tensor exact = exact_linear(x, weight, bias, kind ? working_type(x) : out);
      if (kind) exact = cast(activation(exact, *kind), out);
      results.push_back(residual ? add(exact, residual) : exact);
      continue;
    }
    const PackedMatrix& w = weight.matrix();
    check(x.rank() >= 1 && x.dim(-1) == w.width && (!bias || bias.shape() == Shape{w.outputs}),
          "linear: the packed weight is [{}, {}], x is {}, bias is {}; expected [..., C] and [N]",
          w.outputs, w.width, x.shape(), bias.shape());
    Shape shape = x.shape();
    shape.back() = w.outputs;
    const Tensor& y = results.emplace_back(empty(shape, out, x.device()));
    if (weight.packed_for_use())
      products.push_back({y, bias, weight.packed(), kind, residual});
    else
      multiply_late(y, x, layer);
  }
  const auto alike = [](const PackedProduct& a, const PackedProduct& b) {
    return a.weight.format == b.weight.format && a.weight.group == b.weight.group;
  };
  const int64_t rows = rows_of(x).count;
  const std::span<const PackedProduct> all = products;
  for (size_t begin = 0, end = 1; begin < all.size(); begin = end++) {
    while (end < all.size() && alike(all[begin], all[end])) ++end;
    kernels(x).packed_linear(all.subspan(begin, end - begin), x, rows);
  }
  return results;
}

Tensor linear(const Tensor& x, const PackedWeight& weight, const Tensor& bias, DType out) {
  return linear(x, {{weight, bias}}, out)[0];
}

namespace {

// y[i] = table[id[i]], where the panels of these rows are packed first.
void unpack_late(const Tensor& y, const PackedMatrix& table, const WeightRows& rows,
                 const HostValues<int32_t>& id) {
  constexpr int64_t kTogether = 256;
  for (int64_t begin = 0; begin < y.dim(0); begin += kTogether) {
    const int64_t count = std::min(kTogether, y.dim(0) - begin);
    const PackedWeight::Panels few(with_outputs(table, count * kPanelOutputs));
    parallel_for(count, 8, [&](int64_t from, int64_t to) {
      for (int64_t i = from; i < to; ++i) {
        const int64_t first = id[begin + i] / kPanelOutputs * kPanelOutputs;
        const int64_t last = std::min(kPanelOutputs, table.outputs - first);
        few.pack(rows, first, i * kPanelOutputs, i * kPanelOutputs + last);
      }
    });
    const Tensor indices = tensor_from<int32_t>(
        {count}, [&](int64_t i) { return i * kPanelOutputs + id[begin + i] % kPanelOutputs; });
    kernels(y).unpack_rows(y.rows(begin, begin + count), few.matrix, indices, count);
  }
}

}  // namespace

Tensor embedding(const Tensor& ids, const PackedWeight& table) {
  check(ids.dtype() == DType::i32, "embedding: ids are {}; expected int32", name_of(ids.dtype()));
  check(static_cast<bool>(table), "embedding: the packed table is empty; expected [V, C]");
  const PackedMatrix& w = table.matrix();
  const HostValues<int32_t> id(ids);
  for (int64_t i = 0; i < ids.size(); ++i) {
    check(id[i] >= 0 && id[i] < w.outputs, "embedding: id {} at position {}; expected 0 to {}",
          id[i], i, w.outputs - 1);
  }
  Shape shape = ids.shape();
  shape.push_back(w.width);
  Tensor y = empty(shape, DType::f32, table.device());
  if (const auto rows = table.rows())
    unpack_late(y.view({ids.size(), w.width}), w, *rows, id);
  else
    kernels(y).unpack_rows(y, table.packed(), ids.to(table.device()), ids.size());
  return y;
}

}  // namespace fovea
