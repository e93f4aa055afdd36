#include "explain/output.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "embed/batching.h"
#include "transformer/pack.h"

namespace fovea::study {

std::vector<int64_t> ExplainedText::removable() const {
  std::vector<int64_t> found;
  for (int64_t t = 0; t < length(); ++t)
    if (own[static_cast<size_t>(t)] != 0 &&
        !std::binary_search(positions.begin(), positions.end(), t))
      found.push_back(t);
  return found;
}

OutputBatch output_batch(const ExplainedText& text, size_t rows) {
  return {infer::token_batch({text.tokens}, std::vector<size_t>(rows, 0)),
          std::vector<std::vector<int64_t>>(rows, text.positions)};
}

std::shared_ptr<const model::Transformer> exact_copy(const model::Transformer& model) {
  auto copy = std::make_shared<model::Transformer>(model);
  model::freeze_packed(*copy);
  return copy;
}

std::vector<double> pooled_rows(model::Pooling pooling, int64_t rows) {
  std::vector<double> weights(static_cast<size_t>(rows), 0.0);
  switch (pooling) {
    case model::Pooling::first: weights.front() = 1; break;
    case model::Pooling::last: weights.back() = 1; break;
    case model::Pooling::mean: weights.assign(weights.size(), 1 / static_cast<double>(rows)); break;
    case model::Pooling::first_and_mean:
    case model::Pooling::attention: break;  // of images, which have no tokens to explain
  }
  return weights;
}

std::vector<double> values_of(const ExplainedOutput& output,
                              const std::vector<ExplainedText>& texts) {
  std::vector<infer::TokenizedText> tokens;
  for (const ExplainedText& text : texts) tokens.push_back(text.tokens);
  std::vector<double> values(texts.size());
  infer::each_batch(
      tokens, 0, [&](const infer::TokenBatch& batch, const std::vector<size_t>& chosen) {
        OutputBatch with_positions(batch);
        for (const size_t text : chosen) with_positions.positions.push_back(texts[text].positions);
        const std::vector<float> found = to_floats(output.values(with_positions, nullptr));
        for (size_t b = 0; b < chosen.size(); ++b) values[chosen[b]] = double{found[b]};
      });
  for (const double value : values)
    if (!std::isfinite(value))
      fail(ErrorKind::Failed,
           "text: the output is not finite; expected a model with finite weights");
  return values;
}

}  // namespace fovea::study
