#pragma once

// Parts that Embedder shares with EmbedQueue, and Reranker with RerankQueue.

#include <string>
#include <vector>

#include "embed/cross_encoder.h"
#include "embed/sentence_model.h"
#include "fovea/infer/embed.h"

namespace fovea::infer {

struct Embedder::Parts {
  std::string folder;
  SentenceModel model;
};

struct Reranker::Parts {
  CrossEncoder model;
};

// The tokens of texts, and the result without its vectors.
struct EmbedInput {
  std::vector<TokenizedText> texts;
  int64_t prompt = 0;  // number of tokens of the prompt in each text
  Embeddings result;
};

// Returns the prompt that the options select.
std::string prompt_of(const NamedPrompts& prompts, const EmbedOptions& options);
// Returns the name of the text with this index, for errors.
std::string name_of(const EmbedOptions& options, size_t text);
// Throws Failed if the caller no longer wants the result.
void check_wanted(const std::function<bool()>& stop);
// Throws InvalidArgument, with the text's name, if a text was truncated to `most` tokens.
void check_whole(const std::vector<TokenizedText>& texts, int64_t most,
                 const EmbedOptions& options);
// Tokenises texts. Throws the errors of Embedder::embed() for invalid options and texts.
EmbedInput read_texts(const SentenceModel& model, const std::vector<std::string>& texts,
                      const EmbedOptions& options);
// Truncates and normalises the model's vectors x [B, C] as the options request -> [B, dimensions].
Tensor finished(const Tensor& x, const SentenceModules& modules, const EmbedOptions& options);
// Throws Failed, with the text's name, if one of the vectors [B, C] is not finite.
void check_finite(const Tensor& vectors, const EmbedOptions& options);

// Tokenises pairs of query i and text i, or of the only query and text i.
std::vector<TokenizedText> read_pairs(const CrossEncoder& model,
                                      const std::vector<std::string>& queries,
                                      const std::vector<std::string>& texts,
                                      const RerankOptions& options);
// Returns the scores of logits [B, 1], with the model's activation unless the options request raw
// scores. Throws Failed if one is not finite.
std::vector<float> scores_of(const Tensor& logits, const CrossEncoder& model,
                             const RerankOptions& options);

}  // namespace fovea::infer
