#include "base/error.h"
#include "base/float_mode.h"
#include "embed/example_files.h"
#include "fovea/embed.h"
#include "metrics/predictions.h"

namespace fovea {

SimilarityEvaluation evaluate_similarity(const Embedder& embedder, const std::string& file,
                                         const EmbedOptions& options) {
  const FloatMode mode;
  const std::vector<ScoredPair> pairs = read_scored_pairs(file);
  if (pairs.size() < 2)
    fail(ErrorKind::BadFile, "{}: {} pairs; expected at least 2", file, pairs.size());
  std::vector<std::string> texts;
  for (const ScoredPair& pair : pairs) texts.insert(texts.end(), {pair.first, pair.second});
  const Embeddings e = embedder.embed(texts, options);
  const ArrayView vectors = e.view();
  Predictions found;
  for (size_t i = 0; i < pairs.size(); ++i) {
    const auto first = static_cast<int64_t>(2 * i);
    const float similarity =
        embedder.similarity(vectors.row<float>(first), vectors.row<float>(first + 1));
    found.similarities.emplace_back(similarity, pairs[i].score);
  }
  return {std::ssize(pairs), values_of(evaluation_task("similarity").metrics, found)};
}

}  // namespace fovea
