#include "options/text_scorer.h"

#include "fovea/open.h"
#include "options/open_model.h"

namespace fovea::cli {

TextScorer open_scorer(const std::string& folder, model::WeightPrecision precision,
                       const std::vector<model::AdapterUse>& adapters) {
  if (model_use(folder) == ModelUse::multi_vector) {
    const auto model = infer::MultiVectorEmbedder::open(folder, precision, adapters);
    warn(model.warnings());
    return [model](const std::string& query, const std::vector<std::string>& texts,
                   const infer::RerankOptions& options) {
      infer::EmbedOptions embed;
      embed.truncate = options.truncate;
      embed.batch_tokens = options.batch_tokens;
      embed.stop = options.stop;
      return model.score(query, texts, embed);
    };
  }
  const infer::Reranker model = infer::Reranker::open(folder, precision, adapters);
  warn(model.warnings());
  return
      [model](const std::string& query, const std::vector<std::string>& texts,
              const infer::RerankOptions& options) { return model.score(query, texts, options); };
}

}  // namespace fovea::cli
