#include "explain/gradients.h"

#include <algorithm>

#include "tensor/host_values.h"
#include "tensor/tape.h"
#include "transformer/token_vectors.h"

namespace fovea::study {
namespace {

constexpr int64_t kTokensAtOnce = 512;  // of a pass, whose activations are kept for the gradients

// The gradient of the outputs with respect to the embeddings of one stack.
struct StackGradient {
  int64_t shift = 0;  // token t is at t + shift: 1 in the decoder of an encoder-decoder
  Tensor gradient;    // [B, T, C]; empty = zero
};

int64_t shift_of(const model::ProbePoint& point) {
  return point.stack == model::ProbePoint::Stack::decoder ? 1 : 0;
}

// Discards what an answer has recorded if backward() was not reached.
struct TapeGuard {
  ~TapeGuard() { clear_tape(); }
};

// Replaces the embeddings of each stack by move(x, shift), and returns the gradients of the sum of
// the outputs.
template <class Move>
std::vector<StackGradient> gradients_at(const ExplainedOutput& output, const OutputBatch& batch,
                                        const Move& move) {
  std::vector<std::pair<int64_t, Tensor>> leaves;
  const model::Probe probe{.see = [&](const model::ProbePoint& point, Tensor& x) {
    if (point.what != model::ProbePoint::What::embedding) return;
    Tensor leaf = move(x.detach(), shift_of(point));
    leaf.want_gradient();
    x = leaf;
    leaves.emplace_back(shift_of(point), leaf);
  }};
  const TapeGuard guard;
  backward(sum(output.values(batch, &probe)));
  std::vector<StackGradient> gradients;
  for (const auto& [shift, leaf] : leaves) gradients.push_back({shift, leaf.gradient()});
  return gradients;
}

// Adds the products of the gradients of batch row b and `rows` [1, T, C] to the scores of the
// tokens.
void add_products(const std::vector<StackGradient>& gradients, int64_t b, const Tensor& rows,
                  std::vector<double>& scores) {
  const int64_t T = rows.dim(1);
  const HostValues<float> x(rows);
  for (const StackGradient& stack : gradients) {
    if (!stack.gradient) continue;
    const HostValues<float> g(stack.gradient);
    for (int64_t t = 0; t + stack.shift < T; ++t) {
      const std::span<const float> of_g = g.row(b * T + t + stack.shift), of_x = x.row(t);
      double product = 0;
      for (size_t c = 0; c < of_g.size(); ++c) product += double{of_g[c]} * double{of_x[c]};
      scores[static_cast<size_t>(t)] += product;
    }
  }
}

// Returns the embeddings of token ids.   -> [1, T, C]
Tensor embeddings_of(const model::Transformer& model, const std::vector<int32_t>& ids) {
  const NoGradient off;
  const Tensor row = tensor_of(ids, {1, std::ssize(ids)});
  const bool source = model.spec.encoder && model.source_embedding.present();
  return model::token_vectors(model, row, source ? model.source_embedding : model.token_embedding);
}

// Returns x - x', zero for tokens that are not the text's own.   -> [1, T, C]
Tensor difference_of(const model::Transformer& model, const ExplainedText& text,
                     std::optional<int32_t> baseline) {
  const NoGradient off;
  const std::vector<int32_t>& ids = text.tokens.ids;
  const Tensor x = embeddings_of(model, ids);
  const Tensor other =
      baseline ? embeddings_of(model, {*baseline}) : zeros({1, 1, x.dim(2)});  // [1, 1, C]
  const int64_t C = x.dim(2);
  const HostValues<float> given(x), reference(other);
  return tensor_from<float>(x.shape(), [&](int64_t i) {
    return text.own[static_cast<size_t>(i / C)] != 0 ? given[i] - reference[i % C] : 0.0f;
  });
}

// Returns the embeddings of a stack at the points `at` of the path: row b is x - (1 - at[b]) (x -
// x').   x [B, T, C], difference [1, T, C] -> [B, T, C]
Tensor on_path(const Tensor& x, const Tensor& difference, int64_t shift,
               const std::vector<double>& at) {
  const int64_t row = x.dim(1) * x.dim(2), begin = shift * x.dim(2);
  const HostValues<float> given(x), d(difference);
  return tensor_from<float>(x.shape(), [&](int64_t i) {
    const auto missing = static_cast<float>(1 - at[static_cast<size_t>(i / row)]);
    return i % row < begin ? given[i] : given[i] - missing * d[i % row - begin];
  });
}

double value_at_baseline(const ExplainedOutput& output, const ExplainedText& text,
                         const Tensor& difference) {
  const NoGradient off;
  const model::Probe probe{.see = [&](const model::ProbePoint& point, Tensor& x) {
    if (point.what == model::ProbePoint::What::embedding)
      x = on_path(x, difference, shift_of(point), {0.0});
  }};
  return double{to_floats(output.values(output_batch(text), &probe))[0]};
}

}  // namespace

std::vector<double> gradient_input(const ExplainedOutput& output, const ExplainedText& text) {
  std::vector<double> scores(static_cast<size_t>(text.length()), 0.0);
  const auto gradients =
      gradients_at(output, output_batch(text), [](const Tensor& x, int64_t) { return x; });
  add_products(gradients, 0, embeddings_of(*output.model, text.tokens.ids), scores);
  return scores;
}

IntegratedGradients integrated_gradients(const ExplainedOutput& output, const ExplainedText& text,
                                         std::optional<int32_t> baseline, int64_t steps) {
  const Tensor difference = difference_of(*output.model, text, baseline);
  const int64_t most = std::max<int64_t>(1, kTokensAtOnce / text.length());
  IntegratedGradients result;
  result.scores.assign(static_cast<size_t>(text.length()), 0.0);
  for (int64_t begin = 0; begin < steps; begin += most) {
    std::vector<double> at;
    for (int64_t step = begin; step < std::min(begin + most, steps); ++step)
      at.push_back((static_cast<double>(step) + 0.5) / static_cast<double>(steps));
    const OutputBatch batch = output_batch(text, at.size());
    const auto gradients = gradients_at(output, batch, [&](const Tensor& x, int64_t shift) {
      return on_path(x, difference, shift, at);
    });
    for (int64_t b = 0; b < std::ssize(at); ++b)
      add_products(gradients, b, difference, result.scores);
  }
  for (double& score : result.scores) score /= static_cast<double>(steps);
  result.baseline_value = value_at_baseline(output, text, difference);
  return result;
}

}  // namespace fovea::study
