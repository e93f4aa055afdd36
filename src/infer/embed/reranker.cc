#include "base/float_mode.h"
#include "embed/batching.h"
#include "embed/embedder_parts.h"
#include "open/model_parts.h"
#include "tensor/tape.h"

namespace fovea::infer {

Reranker Reranker::open(const std::string& folder, model::WeightPrecision precision,
                        const std::vector<model::AdapterUse>& adapters) {
  const FloatMode mode;
  return Reranker(std::make_shared<Parts>(Parts{CrossEncoder::open(
      folder, model::weights_of(precision), model::packing_by_output(precision), adapters)}));
}

const std::vector<std::string>& Reranker::warnings() const { return parts_->model.warnings; }

const model::Spec& Reranker::spec() const { return parts_->model.transformer.spec; }
int64_t Reranker::max_tokens() const { return parts_->model.format.most(); }

std::vector<float> Reranker::score(const std::string& query, const std::vector<std::string>& texts,
                                   const RerankOptions& options) const {
  const FloatMode mode;
  const CrossEncoder& model = parts_->model;
  const NoGradient off;
  const Tensor logits =
      in_batches(read_pairs(model, {query}, texts, options), 1, options.batch_tokens,
                 [&](const TokenBatch& batch) { return model.logits(batch, DType::f32); });
  return scores_of(logits, model, options);
}

}  // namespace fovea::infer
