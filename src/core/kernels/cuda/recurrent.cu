// The cells of recurrent layers: a thread for each element of the state.

#include "kernels/cuda/numbers.h"
//
#include "kernels/cpu/sigmoid-inl.h"

namespace fovea::cuda {
namespace {

using cpu::one_number::tanh_of;

DEVICE float logistic(float x) { return cpu::one_number::Sigmoid(x).value; }
// The derivatives of the logistic function and of tanh, from their values.
DEVICE float logistic_slope(float s) { return s * (1 - s); }
DEVICE float tanh_slope(float t) { return multiply_add(-t, t, 1); }

}  // namespace

KERNEL(recurrent_cell)
(Out h, Out c, Out y, Out kept, In x, In u, In h0, In c0, CellShape shape, int64_t gates,
 int64_t parts) {
  const int64_t W = shape.width;
  for (int64_t e = first_element(); e < shape.rows * W; e += element_stride()) {
    const int64_t row = e / W, i = e % W, in_layer = row * shape.stride;
    const auto input = [&](int64_t n) { return get(x, (in_layer * gates + n) * W + i); };
    const auto recurrent = [&](int64_t n) { return get(u, (row * gates + n) * W + i); };
    const auto sum = [&](int64_t n) { return input(n) + recurrent(n); };
    const auto keep = [&](int64_t n, float value) {
      if (kept.data != nullptr) put(kept, (in_layer * parts + n) * W + i, value);
    };
    float next = 0;
    if (shape.cell == Cell::rnn) {
      next = tanh_of(sum(0));
      keep(0, next);
    } else if (shape.cell == Cell::gru) {
      const float r = logistic(sum(0)), z = logistic(sum(1));
      const float n = tanh_of(multiply_add(r, recurrent(2), input(2)));
      keep(0, r);
      keep(1, z);
      keep(2, n);
      keep(3, recurrent(2));
      next = multiply_add(z, get(h0, e), (1 - z) * n);
    } else {
      const float in_gate = logistic(sum(0)), forget = logistic(sum(1)), g = tanh_of(sum(2)),
                  out_gate = logistic(sum(3));
      const float cell = multiply_add(forget, get(c0, e), in_gate * g);
      keep(0, in_gate);
      keep(1, forget);
      keep(2, g);
      keep(3, out_gate);
      put(c, e, cell);
      next = out_gate * tanh_of(cell);
    }
    put(h, e, next);
    put(y, in_layer * W + i, next);
  }
}

KERNEL(recurrent_cell_backward)
(CellGradients d, In dy, In dh, In dc, In kept, In h0, In c0, In c, CellShape shape, int64_t gates,
 int64_t parts) {
  const int64_t W = shape.width;
  for (int64_t e = first_element(); e < shape.rows * W; e += element_stride()) {
    const int64_t row = e / W, i = e % W, in_layer = row * shape.stride;
    const auto value = [&](int64_t n) { return get(kept, (in_layer * parts + n) * W + i); };
    const auto put_gate = [&](int64_t n, float input, float recurrent) {
      if (d.dx.data != nullptr) put(d.dx, (in_layer * gates + n) * W + i, input);
      if (d.du_rows.data != nullptr) put(d.du_rows, (in_layer * gates + n) * W + i, recurrent);
      if (d.du.data != nullptr) put(d.du, (row * gates + n) * W + i, recurrent);
    };
    const float g = get(dy, in_layer * W + i) + get(dh, e);
    float old = 0;  // the gradient of h0
    if (shape.cell == Cell::rnn) {
      const float sum = g * tanh_slope(value(0));
      put_gate(0, sum, sum);
    } else if (shape.cell == Cell::gru) {
      const float r = value(0), z = value(1), n = value(2);
      const float dn = (g * (1 - z)) * tanh_slope(n);
      const float dr = (dn * value(3)) * logistic_slope(r);
      const float dz = (g * (get(h0, e) - n)) * logistic_slope(z);
      put_gate(0, dr, dr);
      put_gate(1, dz, dz);
      put_gate(2, dn, dn * r);
      old = g * z;
    } else {
      const float in_gate = value(0), forget = value(1), in = value(2), out_gate = value(3);
      const float bent = tanh_of(get(c, e));
      const float dcell = multiply_add(g * out_gate, tanh_slope(bent), get(dc, e));
      const float di = (dcell * in) * logistic_slope(in_gate);
      const float df = (dcell * get(c0, e)) * logistic_slope(forget);
      const float dg = (dcell * in_gate) * tanh_slope(in);
      const float dout = (g * bent) * logistic_slope(out_gate);
      put_gate(0, di, di);
      put_gate(1, df, df);
      put_gate(2, dg, dg);
      put_gate(3, dout, dout);
      put(d.dc0, e, dcell * forget);
    }
    put(d.dh0, e, old);
  }
}

}  // namespace fovea::cuda
