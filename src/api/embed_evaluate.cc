#include "base/error.h"
#include "base/float_mode.h"
#include "embed/correlation.h"
#include "embed/example_files.h"
#include "fovea/embed.h"

namespace fovea {

SimilarityEvaluation evaluate_similarity(const Embedder& embedder, const std::string& file,
                                         const EmbedOptions& options) {
  const FloatMode mode;
  const std::vector<ScoredPair> pairs = read_scored_pairs(file);
  if (pairs.size() < 2)
    fail(ErrorKind::BadFile, "{}: {} pairs; expected at least 2", file, pairs.size());
  std::vector<std::string> texts;
  std::vector<double> scores, similarities;
  for (const ScoredPair& pair : pairs) {
    texts.insert(texts.end(), {pair.first, pair.second});
    scores.push_back(pair.score);
  }
  const Embeddings e = embedder.embed(texts, options);
  for (size_t i = 0; i < pairs.size(); ++i) {
    const float* first = e.values.data() + static_cast<int64_t>(2 * i) * e.width;
    similarities.push_back(embedder.similarity(first, first + e.width, e.width));
  }
  return {static_cast<int64_t>(pairs.size()), 100 * spearman(similarities, scores),
          100 * pearson(similarities, scores)};
}

}  // namespace fovea
