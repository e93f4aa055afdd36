#include "fovea/translate.h"

#include "api/parts.h"
#include "base/error.h"
#include "generate/translation.h"
#include "metrics/bleu.h"
#include "plan/machine.h"

namespace fovea {

void translate(const Model& model, const TranslateOptions& options,
               const std::function<std::optional<std::string>()>& next,
               const std::function<bool(const Translation&)>& put) {
  const Model::Parts& parts = model.parts();
  const Generator generator{parts.transformer, parts.tokenizer ? &*parts.tokenizer : nullptr,
                            rules_of(parts.origin, parts.end_ids), DType::f32};
  translate(generator, options, available_memory() / 2, next, put);
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
