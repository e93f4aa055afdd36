#include <vector>

#include "base/error.h"
#include "ops/common.h"
#include "ops/ops.h"
#include "tensor/tape.h"

namespace fovea {
namespace {

// Returns the shape of a call, of q [..., G, D] and v [..., H, V] with as many rows.
LinearAttention shape_of(const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& beta,
                         const Tensor& decay, const LinearAttentionOptions& options) {
  check(q.rank() == 4 && v.rank() == 4 && q.shape() == k.shape() && q.dim(0) == v.dim(0) &&
            q.dim(1) == v.dim(1) && v.dim(2) % q.dim(2) == 0,
        "linear attention: q is {}, k is {}, v is {}; expected [B, T, G, D], the same, and [B, T, "
        "H, V], with H a multiple of G",
        q.shape(), k.shape(), v.shape());
  const Shape gates{v.dim(0), v.dim(1), v.dim(2)};
  check(beta.shape() == gates && decay.shape() == gates && beta.dtype() == working_type(q) &&
            decay.dtype() == working_type(q),
        "linear attention: beta is {} {}, decay is {} {}; expected {} {}", name_of(beta.dtype()),
        describe(beta.shape()), name_of(decay.dtype()), describe(decay.shape()),
        name_of(working_type(q)), describe(gates));
  return {v.dim(2), q.dim(2), q.dim(3), v.dim(3), options.scale, options.delta, options.tiled};
}

// The chunks of B texts of T tokens.
struct ChunksOfBatch {
  Tensor states, keys, values, decays;
  std::vector<LinearChunk> chunks;
  std::vector<LinearText> texts;

  ChunksOfBatch(const LinearAttention& shape, int64_t B, int64_t T,
                const std::vector<Interval>& valid, DType dtype, const Device& device) {
    const int64_t N = (T + kChunkTokens - 1) / kChunkTokens;
    const auto array = [&](int64_t size) { return empty({B * N, size}, dtype, device); };
    states = array(shape.state_size()), keys = array(shape.keys_size());
    values = array(shape.values_size()), decays = array(shape.decays_size());
    for (int64_t i = 0; i < B * N; ++i) {
      const auto part = [&](const Tensor& x) { return at(Out(x), i * x.dim(1)); };
      chunks.push_back({part(states), part(keys), part(values), part(decays)});
    }
    for (int64_t b = 0; b < B; ++b) {
      const Interval own = valid.empty() ? Interval{0, T} : valid[static_cast<size_t>(b)];
      texts.push_back({b * T + own.begin, own.end - own.begin, 0, chunks.data() + b * N});
    }
  }
};

}  // namespace

Tensor linear_attention(const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& beta,
                        const Tensor& decay, const LinearAttentionOptions& options) {
  const LinearAttention shape = shape_of(q, k, v, beta, decay, options);
  const bool wanted = q.wants_gradient() || k.wants_gradient() || v.wants_gradient() ||
                      beta.wants_gradient() || decay.wants_gradient();
  check(options.valid.empty() || !wanted || !recording(),
        "linear attention: a part of the tokens has no gradients; expected NoGradient");
  const auto kept = std::make_shared<const ChunksOfBatch>(shape, q.dim(0), q.dim(1), options.valid,
                                                          working_type(q), q.device());
  const Tensor y = options.valid.empty() ? empty(v.shape(), v.dtype(), v.device())
                                         : zeros(v.shape(), v.dtype(), v.device());
  kernels(q).linear_attention(y, q, k, v, beta, decay, kept->texts, shape);
  // The chunks hold k and the decays.
  return record(y, {q, k, v, beta, decay},
                [=, q = Saved(q), v = Saved(v), beta = Saved(beta), k = Saved::slot(k),
                 decay = Saved::slot(decay)](const Tensor& dy, Gradients& d) {
                  kernels(dy).linear_attention_backward({d[q], d[k], d[v], d[beta], d[decay]}, dy,
                                                        q.elements(), v.elements(), beta.elements(),
                                                        kept->texts, shape);
                });
}

Tensor linear_attention(const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& beta,
                        const Tensor& decay, std::span<const LinearText> texts,
                        const LinearAttentionOptions& options) {
  check(!recording(), "linear attention: decoding has no gradients; expected NoGradient");
  const Tensor y = empty(v.shape(), v.dtype(), v.device());
  kernels(q).linear_attention(y, q, k, v, beta, decay, texts,
                              shape_of(q, k, v, beta, decay, options));
  return y;
}

}  // namespace fovea
