#pragma once

// What Embedder and EmbedQueue, Reranker and RerankQueue have in common.

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

// Texts as tokens, and all of their result but the vectors.
struct EmbedInput {
  std::vector<TokenizedText> texts;
  int64_t prompt = 0;  // tokens of each text that are the prompt's
  Embeddings result;
};

// The prompt that the options mean.
std::string prompt_of(const SentenceModules& modules, const EmbedOptions& options);
// Throws what Embedder::embed says of options and texts.
EmbedInput read_texts(const SentenceModel& model, const std::vector<std::string>& texts,
                      const EmbedOptions& options);
// The model's vectors x [B, C] as the options want them: [B, dimensions].
Tensor finished(const Tensor& x, const SentenceModules& modules, const EmbedOptions& options);
// Failed, with the text's name, where a vector [B, C] is not finite.
void check_finite(const Tensor& vectors, const EmbedOptions& options);

std::vector<TokenizedText> read_pairs(const CrossEncoder& model, const std::string& query,
                                      const std::vector<std::string>& texts,
                                      const RerankOptions& options);
// The model's numbers [B, 1] as the options want them; Failed where one is not finite.
std::vector<float> scores_of(const Tensor& logits, const CrossEncoder& model,
                             const RerankOptions& options);

}  // namespace fovea
