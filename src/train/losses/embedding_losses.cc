#include "losses/embedding_losses.h"

#include <cmath>

#include "base/error.h"
#include "embed/losses.h"
#include "embed/pooling.h"
#include "losses/score_losses.h"
#include "ops/ops.h"
#include "tensor/host_values.h"

namespace fovea::train {
namespace {

// Returns the rows of x that row_of(i) selects for i in [0, count).
template <class RowOf>
Tensor rows_by(const Tensor& x, int64_t count, const RowOf& row_of) {
  return gather(tensor_from<int32_t>({count}, row_of), x);
}

// Returns the sum of each row.   x [R, C] -> [R, 1]
Tensor row_sums(const Tensor& x) {
  return linear(x, full({1, x.dim(1)}, 1, x.dtype(), x.device()));
}

// Returns the numbers as a constant of x's kind.
Tensor constant_like(const Tensor& x, const std::vector<float>& numbers, const Shape& shape) {
  return tensor_of(numbers, shape, x.dtype()).to(x.device());
}

// Returns |a - b + 1e-6| of each pair of rows.   a, b [R, C] -> [R, 1]
Tensor distances(const Tensor& a, const Tensor& b) {
  constexpr float kIncrease = 1e-6f;
  const Tensor difference = shift(subtract(a, b), kIncrease);
  return exp(scale(log(row_sums(multiply(difference, difference))), 0.5f));
}

// Concatenates the columns.   x [B, M], y [B, N] -> [B, M + N]
Tensor with_columns(const Tensor& x, const Tensor& y) {
  const int64_t B = x.dim(0), M = x.dim(1), N = y.dim(1);
  return concat_tokens(x.view({B, M, 1}), y.view({B, N, 1})).view({B, M + N});
}

// Returns the cosines of each anchor with all candidates and with all anchors, and of its positive
// with all positives: [B, (1 + N) B + B + B]
Tensor all_cosines(const ExampleVectors& x) {
  const Tensor a = infer::unit_length(x.anchors), c = infer::unit_length(x.candidates),
               p = ExampleVectors{a, c}.candidates_of(0);
  return with_columns(with_columns(linear(a, c), linear(a, a)), linear(p, p));
}

// Returns what is added to the logits: a number whose exponential is 0 for those left out.
std::vector<float> left_out(const HostValues<float>& by_guide, int64_t examples,
                            const NegativeMargin& margin) {
  constexpr float kLeftOut = -1e30f;
  std::vector<float> added(by_guide.all().size());
  const int64_t columns = by_guide.size() / examples;
  for (int64_t i = 0; i < examples; ++i) {
    const float positive = by_guide[i * columns + i];
    const float most =
        positive - (margin.relative ? std::abs(positive) * margin.margin : margin.margin);
    for (int64_t j = 0; j < columns; ++j)
      if (j != i && by_guide[i * columns + j] > most)
        added[static_cast<size_t>(i * columns + j)] = kLeftOut;
  }
  return added;
}

}  // namespace

Tensor ExampleVectors::candidates_of(int64_t column) const {
  const int64_t B = examples();
  return rows_by(candidates, B, [=](int64_t i) { return column * B + i; });
}

Tensor ExampleVectors::repeated_anchors() const {
  const int64_t B = examples();
  return rows_by(anchors, candidates.dim(0), [=](int64_t i) { return i % B; });
}

Tensor ExampleVectors::own_products() const {
  const int64_t B = examples(), K = 1 + negatives();
  const Tensor a = rows_by(anchors, B * K, [=](int64_t i) { return i / K; }),
               c = rows_by(candidates, B * K, [=](int64_t i) { return i % K * B + i / K; });
  return row_sums(multiply(a, c)).view({B, K});
}

Tensor pair_cosines(const Tensor& a, const Tensor& b) {
  return row_sums(multiply(infer::unit_length(a), infer::unit_length(b)));
}

// With a = (r, s) and b = (c, d) of unit length, the real part of z / w is r c + s d, and the
// imaginary part s c - r d. Their sum is the dot product of (r, s) and (c - d, d + c), a matrix
// times b.
Tensor pair_angles(const Tensor& a, const Tensor& b) {
  const int64_t C = a.dim(1), half = (C + 1) / 2;
  const Tensor turn = tensor_from<float>({C, C}, [=](int64_t i) {
    const int64_t row = i / C, column = i % C;
    if (row < half) return column == row ? 1 : column == row + half ? -1 : 0;
    return column == row || column == row - half ? 1 : 0;
  });
  const Tensor turned = linear(infer::unit_length(b), convert(turn, b.dtype()).to(b.device()));
  const Tensor sums = row_sums(multiply(infer::unit_length(a), turned));
  return add(activation(sums, Activation::relu), activation(scale(sums, -1), Activation::relu));
}

// The logits are the differences, after one that is 0; the loss is the cross-entropy of that one.
Tensor ordering_loss(const Tensor& similarities, const std::vector<float>& scores,
                     float temperature) {
  check(similarities.size() == std::ssize(scores),
        "ordering_loss: {} similarities with {} scores; expected as many", similarities.size(),
        scores.size());
  std::vector<int32_t> lower = {0}, higher = {0};
  for (size_t i = 0; i < scores.size(); ++i)
    for (size_t j = 0; j < scores.size(); ++j)
      if (scores[i] < scores[j]) {
        lower.push_back(static_cast<int32_t>(i));
        higher.push_back(static_cast<int32_t>(j));
      }
  const Tensor differences = subtract(gather(vector_tensor(lower), similarities),
                                      gather(vector_tensor(higher), similarities));
  return cross_entropy(scale(differences, 1 / temperature).view({1, differences.size()}),
                       zeros({1}, DType::i32));
}

Tensor triplet_loss(const ExampleVectors& x, float margin) {
  const int64_t B = x.examples(), N = x.negatives();
  check(N > 0, "triplet_loss: no negatives; expected one or more of each example");
  const auto repeated = [&](const Tensor& y) {
    return rows_by(y, N * B, [=](int64_t i) { return i % B; });
  };
  const Tensor negatives = rows_by(x.candidates, N * B, [=](int64_t i) { return B + i; });
  const Tensor nearer = distances(x.anchors, x.candidates_of(0)),
               farther = distances(repeated(x.anchors), negatives);
  return mean(activation(shift(subtract(repeated(nearer), farther), margin), Activation::relu));
}

Tensor margin_loss(const ExampleVectors& x, const std::vector<float>& margins) {
  const int64_t B = x.examples(), N = x.negatives();
  check(N > 0 && std::ssize(margins) == B * N,
        "margin_loss: {} margins; expected one for each of {} negatives", margins.size(), B * N);
  return margin_error(x.own_products(), margins);
}

Tensor list_loss(const ExampleVectors& x, const std::vector<float>& scores, float temperature) {
  const int64_t B = x.examples(), K = 1 + x.negatives();
  check(K > 1 && std::ssize(scores) == B * K,
        "list_loss: {} scores; expected one for each of {} candidates", scores.size(), B * K);
  return list_divergence(x.own_products(), scores, temperature);
}

Tensor guided_loss(const ExampleVectors& x, const ExampleVectors& guide, float temperature,
                   const NegativeMargin& margin) {
  const Tensor logits = scale(all_cosines(x), 1 / temperature);
  const Tensor mask =
      constant_like(logits, left_out(HostValues<float>(all_cosines(guide)), x.examples(), margin),
                    logits.shape());
  return cross_entropy(add(logits, mask),
                       tensor_from<int32_t>({x.examples()}, [](int64_t i) { return i; }));
}

}  // namespace fovea::train
