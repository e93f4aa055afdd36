#include "fovea/translate.h"

#include "base/error.h"
#include "base/float_mode.h"
#include "base/machine.h"
#include "generate/source_prefix.h"
#include "generate/translation.h"
#include "metrics/predictions.h"
#include "open/model_parts.h"

namespace fovea {
namespace {

Generator generator_of(const Model& model) {
  const ModelParts& parts = parts_of(model);
  check(model.has_tokenizer(), "translate: the model has no tokenizer; expected a model with one");
  return {parts.transformer,
          &*parts.target_tokenizer,
          rules_of(parts.origin, parts.end_ids),
          DType::f32,
          parts.cache,
          &*parts.tokenizer};
}

TranslateOptions settled(const Model& model, const TranslateOptions& options) {
  TranslateOptions settled = options;
  settled.source_prefix = source_prefix_of(model, options);
  return settled;
}

}  // namespace

TranslationRequest translation_request(const Model& model, const TranslateOptions& options,
                                       const std::string& line) {
  const FloatMode mode;
  return translation_request(generator_of(model), settled(model, options), line);
}

void translate(const Model& model, const TranslateOptions& options,
               const std::function<std::optional<std::string>()>& next,
               const std::function<bool(const Translation&)>& put) {
  const FloatMode mode;
  translate(generator_of(model), settled(model, options), available_memory() / 2, next, put);
}

MetricValues score_translations(const std::vector<std::string>& hypotheses,
                                const std::vector<std::string>& references) {
  const FloatMode mode;
  check(hypotheses.size() == references.size(),
        "{} translations, {} references; expected equal numbers", hypotheses.size(),
        references.size());
  Predictions found;
  auto& translations = found.translations.emplace();
  for (size_t i = 0; i < hypotheses.size(); ++i)
    translations.emplace_back(hypotheses[i], references[i]);
  return values_of(evaluation_task("pairs").metrics, found);
}

}  // namespace fovea
