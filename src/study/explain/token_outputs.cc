#include "explain/token_outputs.h"

#include <algorithm>

#include "embed/head_states.h"
#include "tensor/tape.h"

namespace fovea::study {
namespace {

// Returns the rows of x at the positions of a batch.   x [B, T, N] -> [all positions, N]
Tensor rows_at(const Tensor& x, const std::vector<std::vector<int64_t>>& positions) {
  const int64_t B = x.dim(0), T = x.dim(1);
  std::vector<int32_t> rows;
  for (int64_t b = 0; b < B; ++b)
    for (const int64_t position : positions[static_cast<size_t>(b)])
      rows.push_back(static_cast<int32_t>(b * T + position));
  return gather(tensor_of(rows, {std::ssize(rows)}), x.view({B * T, x.dim(2)}));
}

// Returns the states at the position of each row's mask token.   -> [B, C]
Tensor mask_states(const infer::Classifier::Parts& parts, const model::Transformer& exact,
                   const OutputBatch& batch, const model::Probe* probe) {
  return rows_at(infer::head_states(exact, batch, parts.start, DType::f32, probe), batch.positions);
}

// Returns the logits of all tokens.   -> [B, T, labels]
Tensor token_logits(const infer::Classifier::Parts& parts, const model::Transformer& exact,
                    const OutputBatch& batch, const model::Probe* probe) {
  return infer::head_logits(exact, batch,
                            infer::head_states(exact, batch, parts.start, DType::f32, probe));
}

// Returns the weights of rows that are read at `positions`, all alike.
std::function<std::vector<double>(int64_t)> reads_positions(std::vector<int64_t> positions) {
  return [positions = std::move(positions)](int64_t rows) {
    std::vector<double> weights(static_cast<size_t>(rows), 0.0);
    for (const int64_t position : positions)
      weights[static_cast<size_t>(position)] += 1 / static_cast<double>(positions.size());
    return weights;
  };
}

// Returns factor * the sum of x[b, i, columns[i]] over i.   x [B * N, labels] -> [B, 1]
Tensor sum_of_columns(const Tensor& x, const std::vector<int32_t>& columns, double factor) {
  const int64_t N = std::ssize(columns), B = x.dim(0) / N;
  std::vector<int32_t> all;
  for (int64_t b = 0; b < B; ++b) all.insert(all.end(), columns.begin(), columns.end());
  const Tensor picked = pick(x, tensor_of(all, {B * N, 1}));  // [B * N, 1]
  return linear(picked.view({B, N}), full({1, N}, factor));
}

}  // namespace

ExplainedOutput mask_output(const infer::Classifier::Parts& parts, const ExactModel& exact,
                            const ExplainedText& text, int32_t id) {
  const auto values = [&parts, exact, id](const OutputBatch& batch, const model::Probe* probe) {
    const Tensor logits = exact->logits(mask_states(parts, *exact, batch, probe));  // [B, V]
    const int64_t B = logits.dim(0);
    return log_probability(logits, tensor_of(std::vector<int32_t>(static_cast<size_t>(B), id), {B}))
        .view({B, 1});
  };
  return {exact, values, reads_positions(text.positions)};
}

std::vector<NextToken> likely_at(const infer::Classifier::Parts& parts,
                                 const model::Transformer& exact, const ExplainedText& text) {
  const NoGradient off;
  return most_probable(
      to_floats(softmax(exact.logits(mask_states(parts, exact, output_batch(text), nullptr)))));
}

ExplainedOutput entity_output(const infer::Classifier::Parts& parts, const ExactModel& exact,
                              const ExplainedText& text, const std::vector<int32_t>& labels) {
  const auto values = [&parts, exact, labels](const OutputBatch& batch, const model::Probe* probe) {
    const Tensor logits =
        rows_at(token_logits(parts, *exact, batch, probe), batch.positions);  // [B * N, labels]
    return sum_of_columns(logits, labels, 1 / static_cast<double>(labels.size()));
  };
  return {exact, values, reads_positions(text.positions)};
}

Tensor entity_probabilities(const infer::Classifier::Parts& parts, const model::Transformer& exact,
                            const ExplainedText& text) {
  const NoGradient off;
  const OutputBatch batch = output_batch(text);
  return softmax(rows_at(token_logits(parts, exact, batch, nullptr), batch.positions));
}

ExplainedOutput span_output(const infer::Classifier::Parts& parts, const ExactModel& exact,
                            const ExplainedText& text) {
  const auto values = [&parts, exact](const OutputBatch& batch, const model::Probe* probe) {
    std::vector<std::vector<int64_t>> ends;  // the first and the last token
    for (const auto& positions : batch.positions)
      ends.push_back({positions.front(), positions.back()});
    const Tensor logits = rows_at(token_logits(parts, *exact, batch, probe), ends);  // [B * 2, 2]
    return sum_of_columns(logits, {0, 1}, 1);
  };
  return {exact, values, reads_positions({text.positions.front(), text.positions.back()})};
}

}  // namespace fovea::study
