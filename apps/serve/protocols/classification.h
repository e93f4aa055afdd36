#pragma once

#include <memory>

#include "serve/models/served_model.h"
#include "serve/request/api_error.h"

namespace fovea::serve {

// Routes of classifiers, and scores of pairs of texts. Each submits its texts to the model's queue
// and responds when they are done. Throws ApiError for invalid texts.

using ServedPtr = std::shared_ptr<ServedModel>;
using ExchangePtr = std::shared_ptr<http::Exchange>;

// /v1/classify, in vLLM's format: {"id", "object": "list", "created", "model", "data": [{"index",
// "label", "probs", "num_classes"}], "usage"}
void serve_classify(const ClassifyRequest& request, const ServedPtr& model,
                    const ExchangePtr& exchange);
// /predict: [{"score", "label"}, ...], best first; for an array of inputs an array of these
void serve_predict(const PredictRequest& request, const ServedPtr& model,
                   const ExchangePtr& exchange);
// /v1/score, in vLLM's format: {"id", "object": "list", "created", "model", "data": [{"index",
// "object": "score", "score"}]}; the score of a cross-encoder, or the cosine of an embedding model
void serve_score(const ScoreRequest& request, const ServedPtr& model, const ExchangePtr& exchange);
// /v1/rerank, in the format of Cohere, Jina and vLLM: {"id", "model", "results": [{"index",
// "relevance_score", "document"?}]}, best first
void serve_ranks(const RankRequest& request, const ServedPtr& model, const ExchangePtr& exchange);
// /similarity: [similarity, ...] of the other texts to the first one
void serve_similarity(const SimilarityRequest& request, const ServedPtr& model,
                      const ExchangePtr& exchange);

}  // namespace fovea::serve
