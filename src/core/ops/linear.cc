// Products with weights.

#include "base/error.h"
#include "ops/common.h"
#include "ops/ops.h"
#include "ops/units.h"
#include "ops/weights.h"
#include "tensor/tape.h"

namespace fovea {

namespace {

// `weight` is a Tensor or a PackedWeight, which gets no gradient.
template <class Weight>
Tensor linear_with(const Tensor& x, const Weight& weight, const Tensor& bias, DType out) {
  const Shape matrix = shape_of(weight);
  check(matrix.size() == 2 && x.rank() >= 1 && x.dim(-1) == matrix[1],
        "linear: weight is {}, x is {}; expected [N, C] and [..., C]", matrix, x.shape());
  check(!bias || bias.shape() == Shape{matrix[0]},
        "linear: bias is {}, weight is {}; expected [N] and [N, C]", bias.shape(), matrix);
  const int64_t outputs = matrix[0], width = matrix[1];
  Shape shape = x.shape();
  shape.back() = outputs;
  Tensor y = empty(shape, out, x.device());
  const int64_t count = rows_of(y).count;
  multiply(kernels(x), y, x, weight, bias, {count, outputs, width, false, true});

  if (!recording()) return y;
  std::vector<Tensor> inputs = {x, bias};
  if constexpr (kIsDense<Weight>) inputs.push_back(weight);
  bool trains_weight = false;  // else the elements of x are not needed
  if constexpr (kIsDense<Weight>) trains_weight = weight.wants_gradient();
  return record(y, inputs,
                [=, x = trains_weight ? Saved(x) : Saved::slot(x), units = row_units()](
                    const Tensor& gradient, Gradients& d) {
                  // dx = dy weight,   dweight = dy^T x,   dbias = sum over rows of dy
                  const Tensor& input = x;
                  const Tensor dy = in_dtype(gradient, input.dtype());
                  const Kernels& k = kernels(dy);
                  if (d.wants(bias))
                    k.sum_rows(d[bias], gradient, {count, outputs, units.of(count)});
                  if constexpr (kIsDense<Weight>) {
                    if (d.wants(weight))
                      k.gemm(d[weight], dy, x.elements(), {},
                             {outputs, width, count, true, false, units.of(count)});
                  }
                  if (d.wants(input))
                    multiply(k, d[input], dy, weight, {}, {count, width, outputs, false, false});
                });
}

}  // namespace

Tensor linear(const Tensor& x, const Tensor& weight, const Tensor& bias, DType out) {
  return linear_with(x, weight, bias, out);
}

Tensor linear(const Tensor& x, const Tensor& weight, const Tensor& bias) {
  return linear(x, weight, bias, x.dtype());
}

Tensor exact_linear(const Tensor& x, const PackedWeight& weight, const Tensor& bias, DType out) {
  return linear_with(x, weight, bias, out);
}

Tensor linear_by_head(const Tensor& x, int64_t begin, const Tensor& weight, bool transpose) {
  check(!recording(), "linear_by_head: has no gradient; expected NoGradient");
  check(x.rank() >= 2 && weight.rank() == 2 && begin >= 0 && begin < x.dim(-1) &&
            weight.dim(0) % x.dim(-2) == 0,
        "linear_by_head: x is {} from column {}, weight is {}; expected [..., H, D] and [H N, K]",
        x.shape(), begin, weight.shape());
  const int64_t H = x.dim(-2), D = x.dim(-1), R = x.size() / (H * D);
  const int64_t N = weight.dim(0) / H, K = weight.dim(1);
  const int64_t in = transpose ? N : K, out = transpose ? K : N;
  check(D - begin == in, "linear_by_head: {} elements of each head; expected {}", D - begin, in);
  Shape shape = x.shape();
  shape.back() = out;
  const Tensor y = empty(shape, x.dtype(), x.device());
  const Kernels& k = kernels(x);
  const Tensor head = empty({R, in}, x.dtype(), x.device());
  const Tensor product = empty({R, out}, x.dtype(), x.device());
  for (int64_t h = 0; h < H; ++h) {
    k.copy_columns(head, x, {R, in, H * D, h * D + begin, in, 0});
    k.gemm(product, head, at(In(weight), h * N * K), {}, {R, out, in, false, !transpose});
    k.copy_columns(y, product, {R, out, out, 0, H * out, h * out});
  }
  return y;
}

namespace {

void check_low_rank(const Tensor& x, const Shape& matrix, const Tensor& bias, const LowRank& low) {
  check(matrix.size() == 2 && x.rank() >= 1 && x.dim(-1) == matrix[1],
        "adapted_linear: weight is {}, x is {}; expected [N, C] and [..., C]", matrix, x.shape());
  check(!bias || bias.shape() == Shape{matrix[0]},
        "adapted_linear: bias is {}, weight is {}; expected [N] and [N, C]", bias.shape(), matrix);
  check(low.down.rank() == 2 && low.down.dim(1) == matrix[1] &&
            low.up.shape() == Shape{matrix[0], low.down.dim(0)},
        "adapted_linear: down is {}, up is {}, weight is {}; expected [R, C], [N, R] and [N, C]",
        low.down.shape(), low.up.shape(), matrix);
  check(low.input.shape() == x.shape() && low.input.dtype() == x.dtype(),
        "adapted_linear: the input of the adapter is {} {}, x is {} {}; expected the same",
        name_of(low.input.dtype()), low.input.shape(), name_of(x.dtype()), x.shape());
}

// Returns factor a b, rounded once to a's dtype, where `shape` may transpose b.   -> [m, n]
Tensor scaled_product(const Tensor& a, const Tensor& b, float factor, const GemmShape& shape) {
  const Tensor sums = empty({shape.m, shape.n}, working_type(a), a.device());
  kernels(a).gemm(sums, a, in_dtype(b, a.dtype()), {}, shape);
  const Tensor y = empty(sums.shape(), a.dtype(), a.device());
  kernels(a).scale(y, sums, factor, y.size());
  return y;
}

// `weight` is a Tensor or a PackedWeight, which gets no gradient.
template <class Weight>
Tensor adapted_with(const Tensor& x, const Weight& weight, const Tensor& bias, const LowRank& low) {
  check_low_rank(x, shape_of(weight), bias, low);
  const int64_t outputs = shape_of(weight)[0], width = shape_of(weight)[1], rank = low.down.dim(0);
  const DType dtype = x.dtype();
  Shape shape = x.shape();
  shape.back() = outputs;
  const Tensor y = empty(shape, dtype, x.device());
  const int64_t count = rows_of(y).count;
  const Tensor down = low.down, up = low.up;
  const Tensor inner =  // [count, rank]
      scaled_product(low.input, down, low.scale, {count, rank, width, false, true});
  const Tensor rounded_up = in_dtype(up, dtype);
  multiply(kernels(x), y, x, weight, bias,
           {count, outputs, width, false, true, {}, {inner, rounded_up, rank}});

  if (!recording()) return y;
  std::vector<Tensor> inputs = {x, bias, low.input, down, up};
  if constexpr (kIsDense<Weight>) inputs.push_back(weight);
  bool trains_weight = false;  // else the elements of x are not needed
  if constexpr (kIsDense<Weight>) trains_weight = weight.wants_gradient();
  const bool same_input = low.input.data() == x.data();
  return record(
      y, inputs,
      [=, scale = low.scale, x = trains_weight ? Saved(x) : Saved::slot(x),
       input = Saved(low.input), units = row_units()](const Tensor& gradient, Gradients& d) {
        // With h = scale input A^T and y = x W^T + h B^T + bias:  dB = dy^T h,  dA = dh^T input,
        // dinput = dh A,  dx = dy W,  where dh = scale dy B;  dW and dbias as in linear().
        const Tensor dy = in_dtype(gradient, dtype);
        const Kernels& k = kernels(dy);
        if (d.wants(bias)) k.sum_rows(d[bias], gradient, {count, outputs, units.of(count)});
        if constexpr (kIsDense<Weight>) {
          if (d.wants(weight))
            k.gemm(d[weight], dy, x.elements(), {},
                   {outputs, width, count, true, false, units.of(count)});
        }
        if (d.wants(up))
          k.gemm(d[up], dy, inner, {}, {outputs, rank, count, true, false, units.of(count)});
        const Tensor dinner = scaled_product(dy, up, scale, {count, rank, outputs});
        if (d.wants(down))
          k.gemm(d[down], dinner, input.elements(), {},
                 {rank, width, count, true, false, units.of(count)});
        const Tensor rounded_down = in_dtype(down, dtype);
        GemmShape by_weight = {count, width, outputs, false, false};
        if (same_input) by_weight.second = {dinner, rounded_down, rank};
        const Tensor &to = x, &to_adapter = input;
        if (d.wants(to)) multiply(k, d[to], dy, weight, {}, by_weight);
        if (!same_input && d.wants(to_adapter))
          k.gemm(d[to_adapter], dinner, rounded_down, {}, {count, width, rank, false, false});
      });
}

}  // namespace

Tensor adapted_linear(const Tensor& x, const Tensor& weight, const Tensor& bias,
                      const LowRank& low) {
  return adapted_with(x, weight, bias, low);
}

Tensor adapted_linear(const Tensor& x, const PackedWeight& weight, const Tensor& bias,
                      const LowRank& low) {
  return adapted_with(x, weight, bias, low);
}

}  // namespace fovea
