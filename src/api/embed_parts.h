#pragma once

// What Embedder and EmbedQueue, and Reranker and RerankQueue, share.

#include <string>
#include <vector>

#include "embed/cross_encoder.h"
#include "embed/sentence_model.h"
#include "fovea/embed.h"

namespace fovea {

struct Embedder::Parts {
  std::string folder;
  SentenceModel model;
};

struct Reranker::Parts {
  CrossEncoder model;
};

// The tokens of texts, and their results except the vectors.
struct EmbedInput {
  std::vector<TokenizedText> texts;
  int64_t prompt = 0;  // number of prompt tokens in each text
  Embeddings result;
};

// The prompt that the options select.
std::string prompt_of(const SentenceModules& modules, const EmbedOptions& options);
// Throws as documented for Embedder::embed.
EmbedInput read_texts(const SentenceModel& model, const std::vector<std::string>& texts,
                      const EmbedOptions& options);
// The model's vectors x [B, C] after the options: [B, dimensions].
Tensor finished(const Tensor& x, const SentenceModules& modules, const EmbedOptions& options);
// Throws Failed, with the text's name, if a vector of [B, C] is not finite.
void check_finite(const Tensor& vectors, const EmbedOptions& options);

std::vector<TokenizedText> read_pairs(const CrossEncoder& model, const std::string& query,
                                      const std::vector<std::string>& texts,
                                      const RerankOptions& options);
// The model's scores [B, 1] after the options. Throws Failed if one is not finite.
std::vector<float> scores_of(const Tensor& logits, const CrossEncoder& model,
                             const RerankOptions& options);

}  // namespace fovea
