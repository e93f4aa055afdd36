#include "fovea/infer/translate.h"

#include "base/error.h"
#include "base/float_mode.h"
#include "base/machine.h"
#include "generate/translation.h"
#include "generate/translation_languages.h"
#include "metrics/predictions.h"
#include "open/model_parts.h"

namespace fovea {
namespace {

// A generator for the languages of the options, and the options with the prefix for them.
struct Settled {
  infer::Generator generator;
  infer::TranslateOptions options;
};

Settled settled(const model::Model& model, const infer::TranslateOptions& options) {
  const model::ModelParts& parts = model::parts_of(model);
  check(model.has_tokenizer(), "translate: the model has no tokenizer; expected a model with one");
  infer::ChosenLanguages languages = infer::chosen_languages(model, options);
  Settled settled{
      {parts.transformer, &*parts.target_tokenizer, infer::rules_of(parts.origin, parts.end_ids),
       DType::f32, parts.cache, &*parts.tokenizer},
      options};
  settled.generator.source_language = languages.source;
  if (languages.target) settled.generator.rules.forced_first = languages.target;
  settled.options.source_prefix = std::move(languages.source_prefix);
  return settled;
}

}  // namespace

infer::TranslationRequest infer::translation_request(const model::Model& model,
                                                     const infer::TranslateOptions& options,
                                                     const std::string& line) {
  const FloatMode mode;
  const Settled its = settled(model, options);
  return infer::translation_request(its.generator, its.options, line);
}

void infer::translate(const model::Model& model, const infer::TranslateOptions& options,
                      const std::function<std::optional<std::string>()>& next,
                      const std::function<bool(const infer::Translation&)>& put) {
  const FloatMode mode;
  const Settled its = settled(model, options);
  infer::translate(its.generator, its.options, available_memory() / 2, next, put);
}

infer::MetricValues infer::score_translations(const std::vector<std::string>& hypotheses,
                                              const std::vector<std::string>& references) {
  const FloatMode mode;
  check(hypotheses.size() == references.size(),
        "{} translations, {} references; expected equal numbers", hypotheses.size(),
        references.size());
  infer::Predictions found;
  auto& translations = found.translations.emplace();
  for (size_t i = 0; i < hypotheses.size(); ++i)
    translations.emplace_back(hypotheses[i], references[i]);
  return infer::values_of(infer::evaluation_task("pairs").metrics, found);
}

}  // namespace fovea
