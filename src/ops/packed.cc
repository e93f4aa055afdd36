#include "ops/packed.h"

#include "base/error.h"
#include "tensor/tape.h"

namespace fovea {
PackedWeight::PackedWeight(const Tensor& weight, WeightFormat format, int64_t group)
    : PackedWeight(format, weight.dim(0), weight.dim(1), group) {
  pack(matrix_, weight.to(cpu_device()), panels_.data(), scales_.data_as<uint16_t>());
}

PackedWeight::PackedWeight(const Tensor& rows, const Tensor& scales, int64_t width, int64_t group) {
  matrix_.format = rows.dtype() == DType::u8 ? WeightFormat::int4 : WeightFormat::int8;
  matrix_.outputs = rows.dim(0);
  matrix_.width = width;
  matrix_.group = group_size(group, width);
  allocate();
  pack_quantized(matrix_, rows.data_as<uint8_t>(), scales.data_as<uint16_t>(), panels_.data(),
                 scales_.data_as<uint16_t>());
}

PackedWeight::PackedWeight(WeightFormat format, int64_t outputs, int64_t width, int64_t group) {
  matrix_.format = format;
  matrix_.outputs = outputs;
  matrix_.width = width;
  matrix_.group = has_integers(format) ? group_size(group, width) : 0;
  allocate();
}

int64_t PackedWeight::fill(const Tensor& weight, int64_t begin, int64_t end) {
  return pack_panels(matrix_, weight, begin, end, panels_.data(), scales_.data_as<uint16_t>());
}

int64_t PackedWeight::fill(const BlockRows& rows, int64_t begin, int64_t end) {
  return pack_panels(matrix_, rows, begin, end, panels_.data(), scales_.data());
}

void PackedWeight::allocate() {
  set_panels(empty({panels_of(matrix_) * panel_bytes(matrix_)}, DType::u8),
             empty({scale_bytes(matrix_) / 2}, DType::f16));
}

void PackedWeight::set_panels(const Tensor& panels, const Tensor& scales) {
  panels_ = panels;
  scales_ = scales;
  matrix_.panels = panels_.data();
  matrix_.scales = static_cast<const uint16_t*>(scales_.data());
  matrix_.device = panels_.device().number;
}

PackedWeight PackedWeight::to(const Device& device) const {
  PackedWeight y = *this;
  y.set_panels(panels_.to(device), scales_.to(device));
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
  kernels(y).unpack_rows(y, matrix_, nullptr, matrix_.outputs);
  return y;
}

std::vector<Tensor> linear(const Tensor& x, const std::vector<PackedLayer>& layers, DType out) {
  std::vector<Tensor> results;
  std::vector<PackedProduct> products;
  results.reserve(layers.size());
  products.reserve(layers.size());
  for (const auto& [weight, bias] : layers) {
    if (weight.multiplies_exactly()) {
      results.push_back(exact_linear(x, weight, bias, out));
      continue;
    }
    const PackedMatrix& w = weight.matrix();
    check(x.rank() >= 1 && x.dim(-1) == w.width && (!bias || bias.shape() == Shape{w.outputs}),
          "linear: the packed weight is [{}, {}], x is {}, bias is {}; expected [..., C] and [N]",
          w.outputs, w.width, x.shape(), bias.shape());
    Shape shape = x.shape();
    shape.back() = w.outputs;
    const Tensor& y = results.emplace_back(empty(shape, out, x.device()));
    products.push_back({y, bias, w});
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

Tensor embedding(const Tensor& ids, const PackedWeight& table) {
  check(ids.dtype() == DType::i32, "embedding: ids are {}; expected int32", name_of(ids.dtype()));
  check(static_cast<bool>(table), "embedding: the packed table is empty; expected [V, C]");
  const PackedMatrix& w = table.matrix();
  const Tensor host = ids.to(cpu_device());
  const int32_t* id = host.data_as<int32_t>();
  for (int64_t i = 0; i < ids.size(); ++i) {
    check(id[i] >= 0 && id[i] < w.outputs, "embedding: id {} at position {}; expected 0 to {}",
          id[i], i, w.outputs - 1);
  }
  Shape shape = ids.shape();
  shape.push_back(w.width);
  Tensor y = empty(shape, DType::f32, table.device());
  kernels(y).unpack_rows(y, w, ids.to(table.device()), ids.size());
  return y;
}

}  // namespace fovea
