#include "nn/head.h"

#include <cmath>

#include "base/error.h"
#include "tensor/tape.h"

namespace fovea::model {

namespace {

// The pooling's only attention layer sees all tokens.
StackSpec without_windows(StackSpec stack) {
  stack.attention.windows.clear();
  return stack;
}

// [B, N, ...] and [B, M] of the same batch rows -> [B, N + M]
Tensor joined(const Tensor& a, const Tensor& b) {
  const int64_t B = a.dim(0);
  return concat_tokens(a.view({B, a.dim(1), 1}), b.view({B, b.dim(1), 1}))
      .view({B, a.dim(1) + b.dim(1)});
}

}  // namespace

AttentionPooling::AttentionPooling(const StackSpec& stack, int64_t width)
    : query{{1, width}, Role::position_embedding, {}},
      attention(without_windows(stack), width, 0, {}, true),
      norm(stack.norm, width),
      ffn(stack, width, 0) {}

Tensor AttentionPooling::operator()(const Tensor& hidden,
                                    const std::vector<Interval>& valid) const {
  const int64_t B = hidden.dim(0), C = hidden.dim(2);
  LayerPass pass;
  pass.compute = hidden.dtype();
  pass.memory = hidden;
  pass.memory_valid = valid;
  const Tensor rows = zeros({B, 1}, DType::i32).to(hidden.device());
  const Tensor x = cast(embedding(rows, query.value), pass.compute);  // [B, 1, C]
  const Tensor y = attention(x, pass);
  return add(y, ffn(norm(y, pass.compute), pass)).view({B, C});
}

Head::Head(const Spec& s, const StackSpec& last)
    : spec(s.head), unpooled(s.input.class_tokens + s.input.registers) {
  const HeadSpec& h = s.head;
  const NormSpec& norm_spec = last.norm;
  if (h.pooling == Pooling::attention) attention.emplace_back(last, s.width);
  const bool words = h.kind == HeadKind::language_model;
  const int64_t embedding = words && s.embedding_width > 0 ? s.embedding_width : s.width;
  const int64_t width = h.transform_width > 0 ? h.transform_width : embedding;
  if (h.transform) transform = Linear(s.width, width, h.transform_bias);
  norm = Norm(norm_spec, width, h.transform_norm);
  const int64_t outputs = words                        ? s.vocabulary
                          : h.kind == HeadKind::pooled ? h.projection
                                                       : h.labels;
  if (outputs == 0) return;
  const int64_t wide = h.pooling == Pooling::first_and_mean ? 2 : 1;
  output = Linear(wide * width, outputs, h.bias);
  if (h.distilled) distilled = Linear(s.width, outputs, h.bias);
  if (h.tied) output.weight = {};
}

Tensor Head::pooled(const Tensor& hidden, const std::vector<Interval>& valid) const {
  if (spec.pooling == Pooling::attention) return attention[0](hidden, valid);
  if (spec.pooling != Pooling::first_and_mean) return pool(hidden, spec.pooling, valid);
  const std::vector<Interval> patches(static_cast<size_t>(hidden.dim(0)),
                                      {unpooled, hidden.dim(1)});
  return joined(pool(hidden, Pooling::first, {}), pool(hidden, Pooling::mean, patches));
}

Tensor Head::features(const Tensor& hidden, const std::vector<Interval>& valid) const {
  Tensor x = hidden;
  const bool pools = spec.kind == HeadKind::sequence || spec.kind == HeadKind::pooled;
  if (pools && !spec.pool_transformed) x = pooled(x, valid);
  if (transform.weight.present()) x = norm(activation(transform(x), spec.activation), x.dtype());
  if (spec.pool_transformed) x = pooled(x, valid);
  if (spec.scaled && spec.kind != HeadKind::pooled)
    x = scale(x, 1.0f / std::sqrt(static_cast<float>(x.dim(-1))));
  return spec.scale == 1 ? x : scale(x, spec.scale);  // the logits have no bias then
}

Tensor Head::operator()(const Tensor& hidden, const Parameter& token_embedding,
                        const std::vector<Interval>& valid) const {
  const Tensor x = features(hidden, valid);
  const DType out = x.dtype() == DType::f64 ? DType::f64 : DType::f32;
  if (spec.kind == HeadKind::pooled && !output.weight.present()) return cast(x, out);
  Tensor y = linear(x, spec.tied ? token_embedding : output.weight, output.bias.value, out);
  if (spec.distilled) {
    const std::vector<Interval> second(static_cast<size_t>(hidden.dim(0)), {1, 2});
    const Tensor token = pool(hidden, Pooling::first, second);
    y = scale(add(y, linear(token, distilled.weight, distilled.bias.value, out)), 0.5f);
  }
  return spec.softcap > 0 ? softcap(y, spec.softcap) : y;
}

bool Head::in_blocks(const Parameter& matrix, int64_t rows) const {
  const bool exact = !matrix.packed || matrix.packed.multiplies_exactly();
  // Only the gradients of the matrix need each block a second time.
  const bool trained = matrix.value.wants_gradient() || output.bias.value.wants_gradient();
  const int64_t most = recording() && trained ? kLogitsAtOnce : kLogitsOfBlock;
  return spec.kind == HeadKind::language_model && exact && rows * matrix.shape[0] > most;
}

Tensor Head::loss(const Tensor& hidden, const Parameter& token_embedding,
                  const std::vector<Interval>& valid, const Tensor& labels,
                  const LossOptions& given) const {
  const Parameter& matrix = spec.tied ? token_embedding : output.weight;
  if (!in_blocks(matrix, labels.size()))
    return cross_entropy((*this)(hidden, token_embedding, valid), labels, given);
  const Tensor x = features(hidden, valid);
  LossOptions options = given;
  options.softcap = spec.softcap;
  return matrix.packed ? linear_cross_entropy(x, matrix.packed, output.bias.value, labels, options)
                       : linear_cross_entropy(x, matrix.value, output.bias.value, labels, options);
}

Tensor Head::log_probabilities(const Tensor& hidden, const Parameter& token_embedding,
                               const Tensor& labels) const {
  const Parameter& matrix = spec.tied ? token_embedding : output.weight;
  if (!in_blocks(matrix, labels.size()))
    return log_probability((*this)(hidden, token_embedding, {}), labels);
  const Tensor x = features(hidden, {});
  const Tensor& bias = output.bias.value;
  return matrix.packed ? linear_log_probability(x, matrix.packed, bias, labels, spec.softcap)
                       : linear_log_probability(x, matrix.value, bias, labels, spec.softcap);
}

// Computes a weighted sum over all tokens: the mean of the valid tokens, or the first or last one.
Tensor pool(const Tensor& hidden, Pooling pooling, const std::vector<Interval>& valid) {
  const int64_t B = hidden.dim(0), T = hidden.dim(1), C = hidden.dim(2);
  const Tensor indices = empty({B, T}, DType::i32);
  Tensor weights = zeros({B, T}, hidden.dtype() == DType::f64 ? DType::f64 : DType::f32);
  for (int64_t b = 0; b < B; ++b) {
    Interval row = valid.empty() ? Interval{0, T} : valid[static_cast<size_t>(b)];
    check(row.begin < row.end, "batch row {} has no tokens; expected at least one", b);
    if (pooling == Pooling::first) row.end = row.begin + 1;
    if (pooling == Pooling::last) row.begin = row.end - 1;
    const double weight = 1.0 / static_cast<double>(row.end - row.begin);
    for (int64_t t = 0; t < T; ++t) {
      indices.data_as<int32_t>()[b * T + t] = static_cast<int32_t>(b * T + t);
      if (t < row.begin || t >= row.end) continue;
      if (weights.dtype() == DType::f64)
        weights.data_as<double>()[b * T + t] = weight;
      else
        weights.data_as<float>()[b * T + t] = static_cast<float>(weight);
    }
  }
  const Tensor y =
      combine(hidden.view({B * T, C}), indices, weights.to(hidden.device()));  // [B, C]
  return cast(y, hidden.dtype());
}

}  // namespace fovea::model
