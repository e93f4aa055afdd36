#include <cmath>

#include "api/parts.h"
#include "base/error.h"
#include "embed/batching.h"
#include "embed/cross_encoder.h"
#include "fovea/embed.h"

namespace fovea {

struct Reranker::Parts {
  CrossEncoder model;
};

Reranker Reranker::open(const std::string& folder, std::vector<std::string>* warnings,
                        WeightPrecision precision) {
  auto parts = std::make_shared<Parts>(
      Parts{CrossEncoder::open(folder, weights_of(precision), packing_of(precision))});
  if (warnings != nullptr) *warnings = parts->model.warnings;
  return Reranker(std::move(parts));
}

std::vector<float> Reranker::score(const std::string& query, const std::vector<std::string>& texts,
                                   const RerankOptions& options) const {
  const CrossEncoder& model = parts_->model;
  const std::vector<TokenizedText> pairs =
      tokenize_all(texts.size(), [&](size_t i) { return model.format.pair(query, texts[i]); });
  for (size_t i = 0; i < pairs.size() && !options.truncate; ++i)
    check(pairs[i].cut == 0, "text {}: has {} tokens with the query; expected at most {}", i + 1,
          static_cast<int64_t>(pairs[i].ids.size()) + pairs[i].cut, model.format.most());
  const std::vector<float> scores =
      to_floats(in_batches(pairs, 1, options.batch_tokens, [&](const TokenBatch& batch) {
        const Tensor logits = model.logits(batch, DType::f32);
        return options.raw || !model.activation ? logits : activation(logits, *model.activation);
      }));
  for (size_t i = 0; i < scores.size(); ++i)
    if (!std::isfinite(scores[i]))
      fail(ErrorKind::Failed, "text {}: its score is not finite; expected a sound model", i + 1);
  return scores;
}

}  // namespace fovea
