#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "ops/ops.h"
#include "optim/rules.h"
#include "tensor/in_place.h"

namespace fovea::train {
namespace {

// The coefficients of the polynomial and the number of its uses, as in Jordan et al. 2024.
constexpr std::array<float, 3> kPolynomial = {3.4445f, -4.7750f, 2.0315f};
constexpr int kIterations = 5;
constexpr double kLeastNorm = 1e-7;

// Returns about U V^T of the singular value decomposition x = U S V^T: Newton-Schulz iterations
//   x = a x + (b A + c A^2) x,  A = x x^T,
// from x / |x|, with factors of products in `dtype` and sums in fp32. All singular values become
// about 1. A matrix with more rows than columns uses A = x^T x instead, from the right.
// Overwrites x.   [R, C] -> [R, C]
Tensor orthogonalised(Tensor x, DType dtype) {
  const auto [a, b, c] = kPolynomial;
  const int64_t R = x.dim(0), C = x.dim(1), small = std::min(R, C);
  const bool wide = R <= C;
  const Kernels& k = kernels(x);
  scale_in_place(x, 1 / std::max(kLeastNorm, std::sqrt(k.sum_of_squares(x, x.size()))));
  Tensor next = empty_like(x);
  const Tensor A = empty({small, small}, x.dtype(), x.device()), B = empty_like(A);
  for (int i = 0; i < kIterations; ++i) {
    const Tensor X = cast(x, dtype);
    k.gemm(A, X, X, {}, {small, small, std::max(R, C), !wide, wide});
    const Tensor A_factor = cast(A, dtype);
    k.gemm(B, A_factor, A_factor, {}, {small, small, small});
    scale_in_place(B, c);
    add_scaled(B, A, b);
    const Tensor P = cast(B, dtype);
    k.gemm(next, wide ? P : X, wide ? X : P, {}, {R, C, small});
    add_scaled(next, x, a);
    std::swap(x, next);
  }
  return x;
}

double scale_of(MuonScale scale, const Shape& shape) {
  const auto N = static_cast<double>(shape[0]), C = static_cast<double>(shape[1]);
  return scale == MuonScale::adamw ? 0.2 * std::sqrt(std::max(N, C))
                                   : std::sqrt(std::max(1.0, N / C));
}

}  // namespace

// Jordan et al. 2024, as in torch.optim.Muon, whose products are always in bf16: m is the moving
// mean of g,
//   w = (1 - rate decay) w - rate scale orthogonalised(u),
// where u is m or, with Nesterov's momentum, (1 - momentum) g + momentum m.
void muon_rule(const Trained& it, const Tensor& gradient, const RuleStep& step,
               const OptimizerOptions& o) {
  const double momentum = o.choice.momentum, rate = step.rate * o.choice.muon_rate;
  const auto share = static_cast<float>((1 - momentum) * static_cast<double>(step.gradient_scale));
  const Tensor &weight = it.parameter->value, &m = it.values[0];
  scale_in_place(m, momentum);
  add_scaled(m, gradient, share);
  const Tensor u = empty_like(gradient);
  kernels(u).scale(u, m, o.choice.nesterov ? static_cast<float>(momentum) : 1.0f, u.size());
  if (o.choice.nesterov) add_scaled(u, gradient, share);
  const Tensor direction = orthogonalised(u, o.products);
  scale_in_place(weight, 1 - rate * step.decay);
  add_scaled(weight, direction,
             static_cast<float>(-rate * scale_of(o.choice.muon_scale, weight.shape())));
}

}  // namespace fovea::train
