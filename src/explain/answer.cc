#include "explain/answer.h"

#include <cmath>

#include "base/error.h"
#include "embed/batching.h"
#include "model/pack.h"

namespace fovea {

std::vector<int64_t> ExplainedText::own_places() const {
  std::vector<int64_t> places;
  for (int64_t t = 0; t < length(); ++t)
    if (own[static_cast<size_t>(t)] != 0) places.push_back(t);
  return places;
}

std::shared_ptr<const Transformer> exact_copy(const Transformer& model) {
  auto copy = std::make_shared<Transformer>(model);
  freeze_packed(*copy);
  return copy;
}

std::vector<double> pooled_rows(Pooling pooling, int64_t rows) {
  std::vector<double> weights(static_cast<size_t>(rows), 0.0);
  switch (pooling) {
    case Pooling::first: weights.front() = 1; break;
    case Pooling::last: weights.back() = 1; break;
    case Pooling::mean: weights.assign(weights.size(), 1 / static_cast<double>(rows)); break;
    case Pooling::first_and_mean:
    case Pooling::attention: break;  // of images, which have no tokens to explain
  }
  return weights;
}

std::vector<double> values_of(const ExplainedAnswer& answer,
                              const std::vector<TokenizedText>& texts) {
  const Tensor found = in_batches(
      texts, 1, 0, [&](const TokenBatch& batch) { return answer.values(batch, nullptr); });
  std::vector<double> values;
  for (const float value : to_floats(found)) {
    if (!std::isfinite(value))
      fail(ErrorKind::Failed,
           "text: the answer is not finite; expected a model with finite weights");
    values.push_back(double{value});
  }
  return values;
}

}  // namespace fovea
