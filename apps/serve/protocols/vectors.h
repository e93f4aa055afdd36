#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>

#include "serve/models/served_model.h"
#include "serve/request/api_error.h"

namespace fovea::serve {

// Routes of embedding and re-ranking models. Each submits its texts to the model's queue and
// responds when they are done. Throws ApiError for invalid texts.

// Computes the vectors of a request, whose texts are in the field `param`; `write` makes the body.
using WriteVectors = std::function<std::string(const infer::Embeddings& embeddings)>;
void serve_vectors(const VectorRequest& request, bool as_base64, const char* param,
                   ErrorShape shape, const std::shared_ptr<ServedModel>& model,
                   const std::shared_ptr<http::Exchange>& exchange, const WriteVectors& write);
// Writes a vector without a tree of JSON values, since vectors are long. Clients that parse the
// decimal numbers as floats get the same bits.
void add_vector(std::string& out, std::span<const float> values, bool as_base64);
std::string vectors_json(const infer::Embeddings& embeddings);  // [[...], ...]

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
