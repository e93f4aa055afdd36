#include <algorithm>

#include "base/error.h"
#include "base/float_mode.h"
#include "embed/batching.h"
#include "embed/embedder_parts.h"
#include "embed/example_files.h"
#include "fovea/infer/embed.h"
#include "metrics/predictions.h"

namespace fovea::infer {
namespace {

// The texts of scored pairs: those of pair i are texts 2 i and 2 i + 1.
struct PairTexts {
  std::vector<ScoredPair> pairs;
  std::vector<std::string> texts;
};

PairTexts read_pair_texts(const std::string& file) {
  PairTexts read{read_scored_pairs(file), {}};
  if (read.pairs.size() < 2)
    fail(ErrorKind::BadFile, "{}: {} pairs; expected at least 2", file, read.pairs.size());
  for (const ScoredPair& pair : read.pairs)
    read.texts.insert(read.texts.end(), {pair.first, pair.second});
  return read;
}

SimilarityEvaluation evaluation_of(const Embedder& embedder, const std::vector<ScoredPair>& pairs,
                                   const ArrayView& vectors) {
  Predictions found;
  for (size_t i = 0; i < pairs.size(); ++i) {
    const auto first = static_cast<int64_t>(2 * i);
    const float similarity =
        embedder.similarity(vectors.row<float>(first), vectors.row<float>(first + 1));
    found.similarities.emplace_back(similarity, pairs[i].score);
  }
  return {std::ssize(pairs), values_of(evaluation_task("similarity").metrics, found)};
}

// Returns the model's modules with one pooling. A model with several has modules for their joint
// width, of which only a normalisation fits one of them.
SentenceModules with_pooling(const SentenceModules& modules, TokenPooling mode, int64_t width) {
  SentenceModules other = modules;
  if (modules.pooling.modes.size() > 1) {
    std::erase_if(other.after, [](const VectorModule& module) {
      return !std::holds_alternative<NormalizeModule>(module);
    });
    other.width = width;
  }
  other.pooling.modes = {mode};
  return other;
}

}  // namespace

SimilarityEvaluation evaluate_similarity(const Embedder& embedder, const std::string& file,
                                         const EmbedOptions& options) {
  const FloatMode mode;
  const PairTexts read = read_pair_texts(file);
  const Embeddings vectors = embedder.embed(read.texts, options);
  return evaluation_of(embedder, read.pairs, vectors.view());
}

std::vector<PoolingEvaluation> evaluate_poolings(const Embedder& embedder, const std::string& file,
                                                 const EmbedOptions& options) {
  const FloatMode mode;
  const SentenceModel& model = embedder.parts().model;
  const PairTexts read = read_pair_texts(file);
  const EmbedInput input = read_texts(model, read.texts, options);
  constexpr size_t kModes = std::size(kTokenPoolings);
  std::vector<SentenceModules> modules;
  std::vector<Tensor> vectors;  // of each mode: [texts, width]
  for (const TokenPooling pooling : kTokenPoolings) {
    modules.push_back(with_pooling(model.modules, pooling, model.transformer.spec.width));
    const int64_t width = modules.back().width;
    vectors.push_back(
        zeros({std::ssize(read.texts),
               options.dimensions > 0 ? std::min(options.dimensions, width) : width}));
  }
  each_batch(input.texts, options.batch_tokens, [&](const TokenBatch& batch, const auto& chosen) {
    const Tensor states = model.token_states(batch, DType::f32);
    for (size_t m = 0; m < kModes; ++m) {
      EmbedOptions own = options;
      own.dimensions = vectors[m].dim(1);
      const Tensor rows = finished(pooled_vectors(states, modules[m], batch, input.prompt),
                                   modules[m], own);  // [B, width]
      const int64_t width = rows.dim(1);
      for (size_t b = 0; b < chosen.size(); ++b)
        copy_elements(vectors[m], static_cast<int64_t>(chosen[b]) * width, rows,
                      static_cast<int64_t>(b) * width, width);
    }
  });
  std::vector<PoolingEvaluation> all;
  for (size_t m = 0; m < kModes; ++m) {
    check_finite(vectors[m], options);
    const ArrayView rows{vectors[m].data(), {vectors[m].dim(0), vectors[m].dim(1)}, DType::f32};
    all.push_back({name_of(kTokenPoolings[m]),
                   model.modules.pooling.modes == std::vector{kTokenPoolings[m]},
                   evaluation_of(embedder, read.pairs, rows)});
  }
  return all;
}

}  // namespace fovea::infer
