#include "fovea/translate.h"

#include "api/parts.h"
#include "base/error.h"
#include "generate/translation.h"
#include "metrics/bleu.h"
#include "plan/machine.h"

namespace fovea {
namespace {

Generator generator_of(const Model::Parts& parts) {
  return {parts.transformer, parts.tokenizer ? &*parts.tokenizer : nullptr,
          rules_of(parts.origin, parts.end_ids), DType::f32};
}

}  // namespace

TranslationRequest translation_request(const Model& model, const TranslateOptions& options,
                                       const std::string& line) {
  return translation_request(generator_of(model.parts()), options, line);
}

void translate(const Model& model, const TranslateOptions& options,
               const std::function<std::optional<std::string>()>& next,
               const std::function<bool(const Translation&)>& put) {
  translate(generator_of(model.parts()), options, available_memory() / 2, next, put);
}

TranslationScores score_translations(const std::vector<std::string>& hypotheses,
                                     const std::vector<std::string>& references) {
  check(hypotheses.size() == references.size(), "{} translations, {} references; expected as many",
        hypotheses.size(), references.size());
  Bleu bleu;
  Chrf chrf;
  for (size_t i = 0; i < hypotheses.size(); ++i) {
    bleu.add(hypotheses[i], references[i]);
    chrf.add(hypotheses[i], references[i]);
  }
  return {bleu.score(), chrf.score(), Bleu::signature(), Chrf::signature()};
}

}  // namespace fovea
