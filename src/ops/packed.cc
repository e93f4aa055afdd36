#include "ops/packed.h"

#include <algorithm>

#include "base/error.h"
#include "ops/groups.h"
#include "ops/in_dtype.h"
#include "ops/offset.h"
#include "ops/units.h"
#include "tensor/tape.h"

namespace fovea {
namespace {

void refuse_gradient(const Tensor& x) {
  check(!recording() || !x.wants_gradient(),
        "grouped_linear: x wants a gradient, but the weights are packed; expected the model to be "
        "opened with unpacked weights");
}

// Records dx = dy W and dbias, where W is the matrix that the packed weight represents.
Tensor recorded(const Tensor& y, const Tensor& x, const PackedWeight& weight, const Tensor& bias) {
  if (!recording() || !(x.wants_gradient() || bias.wants_gradient())) return y;
  return record(y, {x, bias},
                [=, x = Saved::slot(x), units = row_units()](const Tensor& gradient, Gradients& d) {
                  const Tensor& input = x;
                  const int64_t outputs = weight.matrix().outputs, width = weight.matrix().width,
                                count = rows_of(gradient).count;
                  const Kernels& k = kernels(gradient);
                  if (d.wants(bias))
                    k.sum_rows(d[bias], gradient, {count, outputs, units.of(count)});
                  if (!d.wants(input)) return;
                  const Tensor dy = in_dtype(gradient, input.dtype());
                  k.gemm(d[input], dy, in_dtype(weight.floats(), dy.dtype()), {},
                         {count, width, outputs, false, false});
                });
}

}  // namespace

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
  for (size_t i = 0; i < results.size(); ++i)
    results[i] = recorded(results[i], x, layers[i].weight, layers[i].bias);
  return results;
}

Tensor linear(const Tensor& x, const PackedWeight& weight, const Tensor& bias, DType out) {
  return linear(x, {{weight, bias}}, out)[0];
}

Tensor grouped_linear(const Tensor& x, const std::vector<int64_t>& counts,
                      const std::vector<PackedWeight>& weights, const std::vector<Tensor>& biases) {
  check_groups(x, counts, weights, biases, [](const PackedWeight& weight) {
    return Shape{weight.matrix().outputs, weight.matrix().width};
  });
  refuse_gradient(x);
  const int64_t outputs = weights[0].matrix().outputs, width = x.dim(1);
  Tensor y = empty({x.dim(0), outputs}, x.dtype(), x.device());
  int64_t begin = 0;
  for (size_t e = 0; e < counts.size(); ++e) {
    if (counts[e] == 0) continue;
    const PackedProduct product{at(Out(y), begin * outputs), biases.empty() ? In{} : In(biases[e]),
                                weights[e].matrix()};
    kernels(x).packed_linear({&product, 1}, at(In(x), begin * width), counts[e]);
    begin += counts[e];
  }
  return y;
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
