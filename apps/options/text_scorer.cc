#include "options/text_scorer.h"

#include "fovea/open.h"
#include "options/open_model.h"

namespace fovea::cli {

TextScorer open_scorer(const std::string& folder, WeightPrecision precision,
                       const std::vector<AdapterUse>& adapters) {
  if (model_use(folder) == ModelUse::multi_vector) {
    const auto model = MultiVectorEmbedder::open(folder, precision, adapters);
    warn(model.warnings());
    return [model](const std::string& query, const std::vector<std::string>& texts,
                   const RerankOptions& options) {
      EmbedOptions embed;
      embed.truncate = options.truncate;
      embed.batch_tokens = options.batch_tokens;
      embed.stop = options.stop;
      return model.score(query, texts, embed);
    };
  }
  const Reranker model = Reranker::open(folder, precision, adapters);
  warn(model.warnings());
  return [model](const std::string& query, const std::vector<std::string>& texts,
                 const RerankOptions& options) { return model.score(query, texts, options); };
}

}  // namespace fovea::cli
