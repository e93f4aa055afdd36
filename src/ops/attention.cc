#include <optional>

#include "base/error.h"
#include "ops/ops.h"
#include "ops/probability.h"
#include "tensor/tape.h"

namespace fovea {
namespace {

AttentionShape shape_of(const Tensor& q, const Tensor& k, const AttentionOptions& options) {
  check(
      q.rank() == 4 && k.rank() == 4 && q.dim(0) == k.dim(0) && q.dim(3) == k.dim(3) &&
          k.dim(2) > 0 && q.dim(2) % k.dim(2) == 0,
      "attention: q is {}, k is {}; expected [B, T, H, D] and [B, S, G, D] with H a multiple of G",
      q.shape(), k.shape());
  const int64_t keys = options.keys < 0 ? k.dim(1) : options.keys;
  check(keys <= k.dim(1), "attention: {} keys of {}", keys, k.dim(1));
  check(options.mask.valid.empty() || static_cast<int64_t>(options.mask.valid.size()) == q.dim(0),
        "attention: the mask has {} rows, the batch {}", options.mask.valid.size(), q.dim(0));
  check_probability(options.dropout, "attention");
  return {.batch = q.dim(0),
          .queries = q.dim(1),
          .keys = keys,
          .capacity = k.dim(1),
          .heads = q.dim(2),
          .kv_heads = k.dim(2),
          .width = q.dim(3),
          .scale = options.scale,
          .mask = options.mask,
          .dropout = options.dropout};
}

}  // namespace

Tensor attention(const Tensor& q, const Tensor& k, const Tensor& v,
                 const AttentionOptions& options) {
  check(k.shape() == v.shape(), "attention: k is {}, v is {}; expected equal shapes", k.shape(),
        v.shape());
  const AttentionShape s = shape_of(q, k, options);
  Tensor y = empty_like(q);
  if (!recording()) {
    kernels(q).attention(y, {}, q, k, v, s);
    return y;
  }
  // log of each softmax's sum: with it the backward computes the weights again, tile by tile.
  Tensor lse =
      empty({s.batch, s.heads, s.queries}, q.dtype() == DType::f64 ? DType::f64 : DType::f32);
  kernels(q).attention(y, lse, q, k, v, s);
  const Tensor kept = y;
  return record(y, {q, k, v}, [=](const Tensor& dy, Gradients& d) {
    // with P = softmax, delta = rowsum(dy * y):  dv = P^T dy,  dS = P * (dy v^T - delta),
    // dq = scale * dS k,  dk = scale * dS^T q   (Dao et al. 2022, appendix B)
    kernels(q).attention_backward(d[q], d[k], d[v], dy, q, k, v, kept, lse, s);
  });
}

Tensor attention_weights(const Tensor& q, const Tensor& k, const AttentionOptions& options) {
  const AttentionShape s = shape_of(q, k, options);
  Tensor weights = empty({s.batch, s.heads, s.queries, s.keys},
                         q.dtype() == DType::f64 ? DType::f64 : DType::f32);
  kernels(q).attention_weights(weights, q, k, s);
  return weights;
}

}  // namespace fovea
