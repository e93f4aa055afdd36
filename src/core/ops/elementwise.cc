// Functions of each element.

#include <cmath>
#include <limits>

#include "base/error.h"
#include "ops/common.h"
#include "ops/ops.h"
#include "ops/units.h"
#include "tensor/tape.h"

namespace fovea {

Tensor activation(const Tensor& x, Activation kind) {
  const int64_t size = x.size();
  Tensor y = empty_like(x);
  kernels(x).activation(y, x, kind, size);
  return record(y, {x}, [=, x = Saved(x)](const Tensor& dy, Gradients& d) {
    kernels(dy).activation_backward(d[x], dy, x.elements(), kind, size);  // dx = dy * f'(x)
  });
}

Tensor gated_activation(const Tensor& x, const Tensor& factor, Activation kind) {
  check(x.shape() == factor.shape(), "gated_activation: {} and {}; expected equal shapes",
        x.shape(), factor.shape());
  const int64_t size = x.size();
  Tensor y = empty_like(x);
  kernels(x).gated_activation(y, x, factor, kind, size);
  if (!recording()) return y;
  y.set_recipe([=, x = Saved(x), factor = Saved(factor)] {
    const Tensor gate = x.elements(), again = empty_like(gate);
    kernels(gate).gated_activation(again, gate, factor.elements(), kind, size);
    return again;
  });
  return record(y, {x, factor},
                [=, x = Saved(x), factor = Saved(factor)](const Tensor& dy, Gradients& d) {
                  // dx = dy * factor * f'(x),  dfactor = dy * f(x)
                  kernels(dy).gated_activation_backward(d[x], d[factor], dy, x.elements(),
                                                        factor.elements(), kind, size);
                });
}

namespace {

Tensor sum_of(const Tensor& a, const Tensor& b) {
  Tensor y = empty_like(a);
  kernels(a).add(y, a, b, a.size());
  return y;
}

}  // namespace

Tensor add(const Tensor& a, const Tensor& b) {
  check(a.shape() == b.shape(), "add: {} and {}; expected equal shapes", a.shape(), b.shape());
  Tensor y = sum_of(a, b);
  if (!recording()) return y;
  // In a residual stream, the elements of a are kept anyway, and those of b may be narrower than
  // the sum. Every second sum is kept, so that none is computed from many.
  if (size_of(b.dtype()) < size_of(a.dtype()) && !a.has_recipe())
    y.set_recipe([a = Saved(a), b = Saved(b)] { return sum_of(a.elements(), b.elements()); });
  return record(y, {a, b},
                [a = Saved::slot(a), b = Saved::slot(b)](const Tensor& dy, Gradients& d) {
                  d.pass(a, dy);
                  d.pass(b, dy);
                });
}

namespace {

// Returns the number [1] once for each column of x.
Tensor for_columns(const Tensor& number, const Tensor& x) {
  const Tensor first = zeros({x.dim(-1)}, DType::i32).to(x.device());
  return embedding(first, number.view({1, 1})).view({x.dim(-1)});
}

}  // namespace

Tensor xielu(const Tensor& x, const Tensor& alpha_p, const Tensor& alpha_n, const Tensor& beta,
             const Tensor& epsilon) {
  for (const Tensor* number : {&alpha_p, &alpha_n, &beta, &epsilon})
    check(number->shape() == Shape{1}, "xielu: a number is {}; expected [1]", number->shape());
  const auto softplus = [](const Tensor& a) { return scale(log_sigmoid(scale(a, -1)), -1); };
  const Tensor n = add(beta, softplus(alpha_n));
  const float least = to_floats(epsilon)[0];
  const float most = std::numeric_limits<float>::max();
  const Tensor curve = subtract(shift(exp(clip(x, -most, least)), -1), clip(x, -most, 0));
  const Tensor below = scale_columns(curve, for_columns(n, x));
  const Tensor above =
      scale_columns(activation(x, Activation::relu_squared), for_columns(softplus(alpha_p), x));
  return add(add(above, below), scale_columns(x, for_columns(beta, x)));
}

Tensor subtract(const Tensor& a, const Tensor& b) {
  check(a.shape() == b.shape(), "subtract: {} and {}; expected equal shapes", a.shape(), b.shape());
  return add(a, scale(b, -1));
}

Tensor multiply(const Tensor& a, const Tensor& b) {
  check(a.shape() == b.shape(), "multiply: {} and {}; expected equal shapes", a.shape(), b.shape());
  Tensor y = empty_like(a);
  kernels(a).multiply(y, a, b, a.size());
  return record(y, {a, b}, [a = Saved(a), b = Saved(b)](const Tensor& dy, Gradients& d) {
    if (d.wants(a)) kernels(dy).multiply(d[a], dy, b.elements(), dy.size());
    if (d.wants(b)) kernels(dy).multiply(d[b], dy, a.elements(), dy.size());
  });
}

Tensor scale(const Tensor& x, float factor) {
  Tensor y = empty_like(x);
  kernels(x).scale(y, x, factor, x.size());
  return record(y, {x}, [factor, x = Saved::slot(x)](const Tensor& dy, Gradients& d) {
    kernels(dy).scale(d[x], dy, factor, dy.size());
  });
}

Tensor shift(const Tensor& x, float offset) {
  Tensor y = empty_like(x);
  kernels(x).shift(y, x, offset, x.size());
  return record(y, {x}, [x = Saved::slot(x)](const Tensor& dy, Gradients& d) { d.pass(x, dy); });
}

Tensor scale_columns(const Tensor& x, const Tensor& factors, const Tensor& bias) {
  const Rows r = rows_of(x);
  check(factors.shape() == Shape{r.width} && (!bias || bias.shape() == Shape{r.width}),
        "scale_columns: factors are {}, bias is {}; expected [{}], the last axis of x",
        factors.shape(), bias.shape(), r.width);
  Tensor y = empty_like(x);
  kernels(x).scale_columns(y, x, factors, bias, r);
  return record(y, {x, factors, bias},
                [=, x = Saved(x), units = row_units()](const Tensor& dy, Gradients& d) {
                  // dx = dy * factors,   dfactors = sum over rows of dy * x,   dbias = that of dy
                  const Kernels& k = kernels(dy);
                  const Rows rows{r.count, r.width, units.of(r.count)};
                  if (d.wants(bias)) k.sum_rows(d[bias], dy, rows);
                  if (d.wants(factors)) {
                    const Tensor products = empty(dy.shape(), working_type(dy), dy.device());
                    k.multiply(products, dy, x.elements(), dy.size());
                    k.sum_rows(d[factors], products, rows);
                  }
                  if (d.wants(x)) k.scale_columns(d[x], dy, factors, {}, r);
                });
}

Tensor softcap(const Tensor& x, float cap) {
  check(cap > 0 && std::isfinite(cap), "softcap: cap {}; expected a positive number", cap);
  Tensor y = empty_like(x);
  kernels(x).softcap(y, x, cap, x.size());
  return record(y, {x}, [cap, x = Saved(x)](const Tensor& dy, Gradients& d) {
    kernels(dy).softcap_backward(d[x], dy, x.elements(), cap, dy.size());
  });
}

Tensor minimum(const Tensor& a, const Tensor& b) {
  check(a.shape() == b.shape(), "minimum: {} and {}; expected equal shapes", a.shape(), b.shape());
  const int64_t size = a.size();
  Tensor y = empty_like(a);
  kernels(a).minimum(y, a, b, size);
  return record(y, {a, b}, [=, a = Saved(a), b = Saved(b)](const Tensor& dy, Gradients& d) {
    // The gradient goes to the smaller element; equal elements share it.
    kernels(dy).minimum_backward(d[a], dy, a.elements(), b.elements(), size);
    kernels(dy).minimum_backward(d[b], dy, b.elements(), a.elements(), size);
  });
}

Tensor clip(const Tensor& x, float least, float most) {
  check(least <= most, "clip: {} to {}; expected ascending limits", least, most);
  const int64_t size = x.size();
  Tensor y = empty_like(x);
  kernels(x).clip(y, x, least, most, size);
  return record(y, {x}, [=, x = Saved(x)](const Tensor& dy, Gradients& d) {
    kernels(dy).clip_backward(d[x], dy, x.elements(), least, most, size);
  });
}

namespace {

// Computes in f32 (f64 for f64): differences of logarithms need this precision.
Tensor elementary(const Tensor& x, Elementary kind) {
  const int64_t size = x.size();
  Tensor y = empty(x.shape(), working_type(x), x.device());
  kernels(x).elementary(y, x, kind, size);
  return record(y, {x}, [=, x = Saved(x)](const Tensor& dy, Gradients& d) {
    kernels(dy).elementary_backward(d[x], dy, x.elements(), kind, size);  // dx = dy * f'(x)
  });
}

}  // namespace

Tensor exp(const Tensor& x) { return elementary(x, Elementary::exp); }
Tensor log(const Tensor& x) { return elementary(x, Elementary::log); }
Tensor log_sigmoid(const Tensor& x) { return elementary(x, Elementary::log_sigmoid); }

Tensor cast(const Tensor& x, DType dtype) {
  if (x.dtype() == dtype) return x;
  return record(convert(x, dtype), {x},
                [x = Saved::slot(x)](const Tensor& dy, Gradients& d) { d.pass(x, dy); });
}

Tensor dropout(const Tensor& x, const Dropout& options) {
  check_probability(options, "dropout");
  if (options.probability == 0) return x;
  check(x.size() % options.units == 0, "dropout: x is {}, of {} units; expected equal parts",
        x.shape(), options.units);
  Tensor y = empty_like(x);
  kernels(x).dropout(y, x, options, x.size());
  return record(y, {x}, [options, x = Saved::slot(x)](const Tensor& dy, Gradients& d) {
    // The same mask is generated again from the seed, so it need not be stored.
    kernels(dy).dropout(d[x], dy, options, dy.size());
  });
}

}  // namespace fovea
