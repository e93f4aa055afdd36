#include "base/error.h"
#include "ops/in_dtype.h"
#include "ops/offset.h"
#include "ops/ops.h"
#include "ops/statistics.h"
#include "ops/units.h"
#include "tensor/tape.h"

namespace fovea {
namespace {

// Backpropagation through time (Werbos 1990): the gradients of x, and du [B, T, G W], those of u.
void backward_through_time(const CellShape& shape, int64_t T, Out dx, const Tensor& du,
                           const Tensor& dy, const Tensor& weight, const Tensor& kept,
                           const Tensor& h, const Tensor& c) {
  const Kernels& k = kernels(dy);
  const int64_t B = shape.rows, W = shape.width, G = gates_of(shape.cell);
  const DType states = h.dtype();
  const Device& device = h.device();
  const Tensor now = empty({B, G * W}, du.dtype(), device);
  Tensor dh = zeros({B, W}, states, device), dc = zeros({B, W}, states, device);
  KeptOperand kept_weight;  // all tokens use it
  for (int64_t t = T - 1; t >= 0; --t) {
    const Tensor dh0 = empty({B, W}, states, device), dc0 = empty({B, W}, states, device);
    k.recurrent_cell_backward({at(dx, t * G * W), at(Out(du), t * G * W), now, dh0, dc0},
                              at(In(dy), t * W), dh, dc, at(In(kept), t * kept_of(shape.cell) * W),
                              h.rows(t, t + 1), c ? In(c.rows(t, t + 1)) : In{},
                              c ? In(c.rows(t + 1, t + 2)) : In{}, shape);
    // dh' = the cell's part + du weight
    Out sum = dh0;
    sum.add = true;
    GemmShape product{B, W, G * W, false, false};
    product.kept = &kept_weight;
    k.gemm(sum, now, weight, {}, product);
    dh = dh0, dc = dc0;
  }
}

// Returns the state before each token, in y's dtype.   y [B, T, W] -> [B, T, W]
Tensor states_before(const Tensor& y) {
  const int64_t T = y.dim(1), W = y.dim(2);
  const Tensor before = zeros(y.shape(), y.dtype(), y.device());
  for (int64_t b = 0; b < y.dim(0); ++b) {
    kernels(y).convert(at(Out(before), (b * T + 1) * W), at(In(y), b * T * W), (T - 1) * W);
  }
  return before;
}

}  // namespace

Tensor recurrence(const Tensor& x, const Tensor& weight, const Tensor& bias, Cell cell) {
  const int64_t G = gates_of(cell);
  check(x.rank() == 3 && weight.rank() == 2 && weight.dim(0) == G * weight.dim(1) &&
            x.dim(2) == weight.dim(0),
        "recurrence: x is {}, weight is {}; expected [B, T, {} W] and [{} W, W]", x.shape(),
        weight.shape(), G, G);
  check(!bias || bias.shape() == Shape{weight.dim(0)},
        "recurrence: bias is {}, weight is {}; expected [N] and [N, W]", bias.shape(),
        weight.shape());
  const int64_t B = x.dim(0), T = x.dim(1), W = weight.dim(1);
  const DType states = working_type(x);
  const CellShape shape{cell, B, W, T};
  const Device& device = x.device();
  const Tensor y = empty({B, T, W}, x.dtype(), device);
  const Tensor h = zeros({T + 1, B, W}, states, device);
  const Tensor c = cell == Cell::lstm ? zeros({T + 1, B, W}, states, device) : Tensor();
  const Tensor kept = recording() ? empty({B, T, kept_of(cell) * W}, states, device) : Tensor();
  const Tensor u = empty({B, G * W}, states, device), matrix = in_dtype(weight, x.dtype());
  const Kernels& k = kernels(x);
  KeptOperand kept_weight;  // all tokens use it
  GemmShape product{B, G * W, W, false, true};
  product.kept = &kept_weight;
  for (int64_t t = 0; t < T; ++t) {
    const Tensor before = h.rows(t, t + 1), after = h.rows(t + 1, t + 2);
    k.gemm(u, in_dtype(before, x.dtype()), matrix, bias, product);
    k.recurrent_cell(after, c ? Out(c.rows(t + 1, t + 2)) : Out{}, at(Out(y), t * W),
                     kept ? at(Out(kept), t * kept_of(cell) * W) : Out{}, at(In(x), t * G * W), u,
                     before, c ? In(c.rows(t, t + 1)) : In{}, shape);
  }
  if (!recording()) return y;
  return record(
      y, {x, weight, bias},
      [=, x = Saved::slot(x), y = y.detach(), units = row_units()](const Tensor& dy, Gradients& d) {
        const Tensor du = empty({B, T, G * W}, matrix.dtype(), matrix.device());
        backward_through_time(shape, T, d[x], du, dy, matrix, kept, h, c);
        const Kernels& of_dy = kernels(dy);
        if (d.wants(bias)) of_dy.sum_rows(d[bias], du, {B * T, G * W, units.of(B * T)});
        if (d.wants(weight))  // dweight = du^T h'
          of_dy.gemm(d[weight], du, states_before(y), {},
                     {G * W, W, B * T, true, false, units.of(B * T)});
      });
}

CellState zero_state(Cell cell, int64_t rows, int64_t width, DType dtype, const Device& device) {
  return {zeros({rows, width}, dtype, device),
          cell == Cell::lstm ? zeros({rows, width}, dtype, device) : Tensor()};
}

Tensor recurrent_step(const Tensor& x, const Tensor& u, CellState& state, Cell cell) {
  const int64_t R = state.h.dim(0), W = state.h.dim(1), G = gates_of(cell);
  check(x.size() == R * G * W && u.size() == R * G * W && u.dtype() == state.h.dtype(),
        "recurrence: x is {}, u is {}, the state is {}; expected [R, {} W], the same, and [R, W]",
        x.shape(), u.shape(), state.h.shape(), G);
  CellState next{empty_like(state.h), state.c ? empty_like(state.c) : Tensor()};
  const Tensor y = empty({R, W}, x.dtype(), x.device());
  kernels(x).recurrent_cell(next.h, next.c ? Out(next.c) : Out{}, y, {}, x, u, state.h,
                            state.c ? In(state.c) : In{}, {cell, R, W, 1});
  state = next;
  return y;
}

}  // namespace fovea
