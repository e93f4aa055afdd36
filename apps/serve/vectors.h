#pragma once

#include <memory>
#include <string>

#include "serve/api_error.h"
#include "serve/served_model.h"

namespace fovea::serve {

// Routes of embedding and re-ranking models. Each submits its texts to the model's queue and
// responds when they are done. Throws ApiError for invalid texts.

// /v1/embeddings: {"object": "list", "data": [{"object", "index", "embedding"}], "model", "usage"}
void serve_openai_embeddings(const OpenAIEmbedRequest& request,
                             const std::shared_ptr<ServedModel>& model,
                             const std::shared_ptr<http::Exchange>& exchange);
// /embed: [[...], ...]
void serve_embed(const EmbedRequest& request, const std::shared_ptr<ServedModel>& model,
                 const std::shared_ptr<http::Exchange>& exchange);
// /embed_sparse: [[{"index", "value"}, ...], ...]
void serve_embed_sparse(const SparseEmbedRequest& request,
                        const std::shared_ptr<ServedModel>& model,
                        const std::shared_ptr<http::Exchange>& exchange);
// /embed_all: a list of vectors for each text
void serve_embed_all(const TokenEmbedRequest& request, const std::shared_ptr<ServedModel>& model,
                     const std::shared_ptr<http::Exchange>& exchange);
// /rerank, by a cross-encoder or a late interaction model: [{"index", "score", "text"?}, ...], best
// first
void serve_rerank(const RerankRequest& request, const std::shared_ptr<ServedModel>& model,
                  const std::shared_ptr<http::Exchange>& exchange);

std::string base64(const std::string& bytes);

}  // namespace fovea::serve
