#include <vector>

#include "kernels/cpu/cpu.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/recurrent.cc"
#include <hwy/foreach_target.h>

#include "base/threads.h"
#include "kernels/cpu/sigmoid-inl.h"
#include "kernels/cpu/simd-inl.h"
#include "kernels/cpu/stored.h"

HWY_BEFORE_NAMESPACE();
namespace fovea::cpu::HWY_NAMESPACE {

HWY_INLINE Vector sigmoid_of(Vector x) { return Sigmoid(x).value; }
HWY_INLINE Vector one_minus(Vector x) { return hn::Sub(all(1), x); }
// The derivatives of sigmoid and tanh, from their values.
HWY_INLINE Vector sigmoid_slope(Vector s) { return hn::Mul(s, one_minus(s)); }
HWY_INLINE Vector tanh_slope(Vector t) { return hn::NegMulAdd(t, t, all(1)); }

inline const float* floats_at(In x, int64_t i) { return static_cast<const float*>(x.data) + i; }
inline float* floats_at(Out y, int64_t i) { return static_cast<float*>(y.data) + i; }

inline int64_t grain_of_cells(const CellShape& shape) {
  return grain_of({shape.rows, 8 * shape.width});
}

void cells(Out h, Out c, Out y, Out kept, In x, In u, In h0, In c0, const CellShape& shape) {
  const int64_t W = shape.width, G = gates_of(shape.cell), K = kept_of(shape.cell);
  const bool lstm = shape.cell == Cell::lstm;
  parallel_for(shape.rows, grain_of_cells(shape), [&](int64_t begin, int64_t end) HWY_ATTR {
    std::vector<float> input(static_cast<size_t>(G * W)), output(static_cast<size_t>(W)),
        unused(static_cast<size_t>(kept.data == nullptr ? K * W : 0));
    for (int64_t row = begin; row < end; ++row) {
      const float* in = widened(x, row * shape.stride * G * W, G * W, input.data());
      const float* recurrent = floats_at(u, row * G * W);
      const float* old_h = floats_at(h0, row * W);
      const float* old_c = lstm ? floats_at(c0, row * W) : nullptr;
      float* new_h = floats_at(h, row * W);
      float* new_c = lstm ? floats_at(c, row * W) : nullptr;
      float* keep =
          kept.data == nullptr ? unused.data() : floats_at(kept, row * shape.stride * K * W);
      each_vector(W, [&](int64_t i, int64_t, auto access) HWY_ATTR {
        const auto input_of = [&](int64_t n) HWY_ATTR { return access.load(in + n * W + i); };
        const auto recurrent_of = [&](int64_t n)
                                      HWY_ATTR { return access.load(recurrent + n * W + i); };
        const auto sum = [&](int64_t n) HWY_ATTR { return hn::Add(input_of(n), recurrent_of(n)); };
        const auto put = [&](int64_t n, Vector v) HWY_ATTR { access.store(v, keep + n * W + i); };
        if (shape.cell == Cell::rnn) {
          const Vector next = tanh_of(sum(0));
          put(0, next);
          access.store(next, new_h + i);
        } else if (shape.cell == Cell::gru) {
          const Vector r = sigmoid_of(sum(0)), z = sigmoid_of(sum(1));
          const Vector n = tanh_of(hn::MulAdd(r, recurrent_of(2), input_of(2)));
          put(0, r);
          put(1, z);
          put(2, n);
          put(3, recurrent_of(2));
          access.store(hn::MulAdd(z, access.load(old_h + i), hn::Mul(one_minus(z), n)), new_h + i);
        } else {
          const Vector in_gate = sigmoid_of(sum(0)), forget = sigmoid_of(sum(1)),
                       g = tanh_of(sum(2)), out_gate = sigmoid_of(sum(3));
          const Vector cell = hn::MulAdd(forget, access.load(old_c + i), hn::Mul(in_gate, g));
          put(0, in_gate);
          put(1, forget);
          put(2, g);
          put(3, out_gate);
          access.store(cell, new_c + i);
          access.store(hn::Mul(out_gate, tanh_of(cell)), new_h + i);
        }
      });
      std::copy_n(new_h, W, output.data());
      narrow_into(y, row * shape.stride * W, W, output.data());
    }
  });
}

// Writes the values to y from index `at` on, unless y is null; `copy` is memory for as many.
void write_floats(Out y, int64_t at, const std::vector<float>& values, std::vector<float>& copy) {
  if (y.data == nullptr) return;
  if (y.dtype == DType::f32 && !y.add) {
    std::copy(values.begin(), values.end(), floats_at(y, at));
    return;
  }
  std::copy(values.begin(), values.end(), copy.begin());
  narrow_into(y, at, std::ssize(copy), copy.data());
}

void cells_backward(const CellGradients& d, In dy, In dh, In dc, In kept, In h0, In c0, In c,
                    const CellShape& shape) {
  const int64_t W = shape.width, G = gates_of(shape.cell), K = kept_of(shape.cell);
  parallel_for(shape.rows, grain_of_cells(shape), [&](int64_t begin, int64_t end) HWY_ATTR {
    std::vector<float> gradient_of_y(static_cast<size_t>(W)), inputs(static_cast<size_t>(G * W)),
        recurrents(static_cast<size_t>(G * W)), copy(static_cast<size_t>(G * W));
    for (int64_t row = begin; row < end; ++row) {
      const float* gradient = widened(dy, row * shape.stride * W, W, gradient_of_y.data());
      const float* later_h = floats_at(dh, row * W);
      const float* keep = floats_at(kept, row * shape.stride * K * W);
      float* dx = inputs.data();
      float* du = recurrents.data();
      each_vector(W, [&](int64_t i, int64_t, auto access) HWY_ATTR {
        const auto value = [&](int64_t n) HWY_ATTR { return access.load(keep + n * W + i); };
        const auto put = [&](int64_t n, Vector input, Vector recurrent) HWY_ATTR {
          access.store(input, dx + n * W + i);
          access.store(recurrent, du + n * W + i);
        };
        const auto state = [&](In x) HWY_ATTR { return access.load(floats_at(x, row * W + i)); };
        const Vector g = hn::Add(access.load(gradient + i), access.load(later_h + i));
        Vector old = all(0);  // the gradient of h0
        if (shape.cell == Cell::rnn) {
          const Vector sum = hn::Mul(g, tanh_slope(value(0)));
          put(0, sum, sum);
        } else if (shape.cell == Cell::gru) {
          const Vector r = value(0), z = value(1), n = value(2);
          const Vector dn = hn::Mul(hn::Mul(g, one_minus(z)), tanh_slope(n));
          const Vector dr = hn::Mul(hn::Mul(dn, value(3)), sigmoid_slope(r));
          const Vector dz = hn::Mul(hn::Mul(g, hn::Sub(state(h0), n)), sigmoid_slope(z));
          put(0, dr, dr);
          put(1, dz, dz);
          put(2, dn, hn::Mul(dn, r));
          old = hn::Mul(g, z);
        } else {
          const Vector in_gate = value(0), forget = value(1), in = value(2), out_gate = value(3);
          const Vector bent = tanh_of(state(c));
          const Vector dcell = hn::MulAdd(hn::Mul(g, out_gate), tanh_slope(bent), state(dc));
          const Vector di = hn::Mul(hn::Mul(dcell, in), sigmoid_slope(in_gate));
          const Vector df = hn::Mul(hn::Mul(dcell, state(c0)), sigmoid_slope(forget));
          const Vector dg = hn::Mul(hn::Mul(dcell, in_gate), tanh_slope(in));
          const Vector dout = hn::Mul(hn::Mul(g, bent), sigmoid_slope(out_gate));
          put(0, di, di);
          put(1, df, df);
          put(2, dg, dg);
          put(3, dout, dout);
          access.store(hn::Mul(dcell, forget), floats_at(d.dc0, row * W + i));
        }
        access.store(old, floats_at(d.dh0, row * W + i));
      });
      write_floats(d.dx, row * shape.stride * G * W, inputs, copy);
      write_floats(d.du_rows, row * shape.stride * G * W, recurrents, copy);
      write_floats(d.du, row * G * W, recurrents, copy);
    }
  });
}

}  // namespace fovea::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace fovea::cpu {

HWY_EXPORT(cells);
HWY_EXPORT(cells_backward);

void recurrent_cell(Out h, Out c, Out y, Out kept, In x, In u, In h0, In c0,
                    const CellShape& shape) {
  check_stored_types(y, x);
  HWY_DYNAMIC_DISPATCH(cells)(h, c, y, kept, x, u, h0, c0, shape);
}

void recurrent_cell_backward(const CellGradients& d, In dy, In dh, In dc, In kept, In h0, In c0,
                             In c, const CellShape& shape) {
  check_stored_types(d.dx, d.du_rows, d.du, dy);
  HWY_DYNAMIC_DISPATCH(cells_backward)(d, dy, dh, dc, kept, h0, c0, c, shape);
}

}  // namespace fovea::cpu
#endif
