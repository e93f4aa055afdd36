#include "base/error.h"
#include "base/threads.h"
#include "ops/common.h"
#include "ops/ops.h"
#include "ops/units.h"
#include "tensor/tape.h"

namespace fovea {
namespace {

// Calls body(begin, end) for blocks of the B sequences. If there are enough of them, each block
// passes through all tokens on one thread, so that threads do not wait for one another after each
// token. The bits do not depend on the blocks.
template <class Body>
void each_block_of_sequences(int64_t B, const Body& body) {
  constexpr int64_t kFewest = 8;  // the rows of a tile of products
  if (B >= kFewest * thread_count())
    parallel_for(B, kFewest, body);
  else
    body(int64_t{0}, B);
}

// Returns the states [end - begin, W] of some sequences before token t.   h [T + 1, B, W]
Tensor states_of(const Tensor& h, int64_t t, int64_t begin, int64_t end) {
  return h.rows(t, t + 1).view({h.dim(1), h.dim(2)}).rows(begin, end);
}
In cells_of(const Tensor& c, int64_t t, int64_t begin, int64_t end) {
  return c ? In(states_of(c, t, begin, end)) : In{};
}

// Backpropagation through time (Werbos 1990) of the sequences [begin, end): the gradients of x, and
// du [B, T, G W], those of u.
void backward_through_time(Cell cell, int64_t begin, int64_t end, Out dx, const Tensor& du,
                           const Tensor& dy, const Tensor& weight, const Tensor& kept,
                           const Tensor& h, const Tensor& c) {
  const Kernels& k = kernels(dy);
  const int64_t R = end - begin, T = dy.dim(1), W = dy.dim(2), G = gates_of(cell);
  const DType states = h.dtype();
  const Device& device = h.device();
  const CellShape shape{cell, R, W, T};
  const Tensor now = empty({R, G * W}, du.dtype(), device);
  Tensor dh = zeros({R, W}, states, device), dc = zeros({R, W}, states, device);
  KeptOperand kept_weight;  // all tokens use it
  for (int64_t t = T - 1; t >= 0; --t) {
    const int64_t offset = begin * T + t;
    const Tensor dh0 = empty({R, W}, states, device), dc0 = empty({R, W}, states, device);
    k.recurrent_cell_backward({at(dx, offset * G * W), at(Out(du), offset * G * W), now, dh0, dc0},
                              at(In(dy), offset * W), dh, dc,
                              at(In(kept), offset * kept_of(cell) * W), states_of(h, t, begin, end),
                              cells_of(c, t, begin, end), cells_of(c, t + 1, begin, end), shape);
    // dh' = the cell's part + du weight
    Out sum = dh0;
    sum.add = true;
    GemmShape product{R, W, G * W, false, false};
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
  const Device& device = x.device();
  const Tensor y = empty({B, T, W}, x.dtype(), device);
  const Tensor h = zeros({T + 1, B, W}, states, device);
  const Tensor c = cell == Cell::lstm ? zeros({T + 1, B, W}, states, device) : Tensor();
  const Tensor kept = recording() ? empty({B, T, kept_of(cell) * W}, states, device) : Tensor();
  const Tensor matrix = in_dtype(weight, x.dtype());
  const Kernels& k = kernels(x);
  each_block_of_sequences(B, [&](int64_t begin, int64_t end) {
    const int64_t R = end - begin;
    const Tensor u = empty({R, G * W}, states, device);
    KeptOperand kept_weight;  // all tokens use it
    GemmShape product{R, G * W, W, false, true};
    product.kept = &kept_weight;
    for (int64_t t = 0; t < T; ++t) {
      const int64_t offset = begin * T + t;
      const Tensor before = states_of(h, t, begin, end), after = states_of(h, t + 1, begin, end);
      k.gemm(u, in_dtype(before, x.dtype()), matrix, bias, product);
      k.recurrent_cell(
          after, c ? Out(states_of(c, t + 1, begin, end)) : Out{}, at(Out(y), offset * W),
          kept ? at(Out(kept), offset * kept_of(cell) * W) : Out{}, at(In(x), offset * G * W), u,
          before, cells_of(c, t, begin, end), {cell, R, W, T});
    }
  });
  if (!recording()) return y;
  return record(
      y, {x, weight, bias},
      [=, x = Saved::slot(x), y = y.detach(), units = row_units()](const Tensor& dy, Gradients& d) {
        const Tensor du = empty({B, T, G * W}, matrix.dtype(), matrix.device());
        const Out dx = d[x];
        each_block_of_sequences(B, [&](int64_t begin, int64_t end) {
          backward_through_time(cell, begin, end, dx, du, dy, matrix, kept, h, c);
        });
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
