#include "nn/head.h"

#include <cmath>

#include "base/error.h"

namespace fovea {

Head::Head(const Spec& s, const NormSpec& norm_spec) : spec(s.head) {
  const HeadSpec& h = s.head;
  if (h.transform) transform = Linear(s.width, s.width, h.transform_bias);
  norm = Norm(norm_spec, s.width, h.transform_norm);
  const int64_t outputs = h.kind == HeadKind::language_model ? s.vocabulary : h.labels;
  if (outputs == 0) return;
  output = Linear(s.width, outputs, h.bias);
  if (h.tied) output.weight = {};
}

Tensor Head::operator()(const Tensor& hidden, const Tensor& token_embedding,
                        const std::vector<Interval>& valid) const {
  Tensor x = hidden;
  if (spec.kind == HeadKind::sequence || spec.kind == HeadKind::pooled)
    x = pool(x, spec.pooling, valid);
  if (transform.weight.present())
    x = norm(activation(transform(x), static_cast<Activation>(spec.activation)), x.dtype());
  const DType out = x.dtype() == DType::f64 ? DType::f64 : DType::f32;
  if (spec.kind == HeadKind::pooled) return cast(x, out);
  if (spec.scaled) x = scale(x, 1.0f / std::sqrt(static_cast<float>(x.dim(-1))));
  const Tensor& matrix = spec.tied ? token_embedding : output.weight.value;
  const Tensor y = linear(x, matrix, output.bias.value, out);
  return spec.softcap > 0 ? softcap(y, spec.softcap) : y;
}

Tensor pool(const Tensor& hidden, Pooling pooling, const std::vector<Interval>& valid) {
  const int64_t B = hidden.dim(0), T = hidden.dim(1), C = hidden.dim(2);
  const int64_t most = pooling == Pooling::mean ? T : 1;  // tokens that count in a row
  const Tensor places = zeros({B, most}, DType::i32), weights = zeros({B, most});
  for (int64_t b = 0; b < B; ++b) {
    const Interval row = valid.empty() ? Interval{0, T} : valid[static_cast<size_t>(b)];
    check(row.begin < row.end, "batch row {} has no tokens; expected at least one", b);
    const int64_t first = pooling == Pooling::last ? row.end - 1 : row.begin;
    const int64_t count = pooling == Pooling::mean ? row.end - row.begin : 1;
    for (int64_t i = 0; i < count; ++i) {
      places.data_as<int32_t>()[b * most + i] = static_cast<int32_t>(b * T + first + i);
      weights.data_as<float>()[b * most + i] = 1.0f / static_cast<float>(count);
    }
  }
  const Tensor y = combine(hidden.view({B * T, C}), places, weights);  // [B, C]
  return cast(y, hidden.dtype());
}

}  // namespace fovea
