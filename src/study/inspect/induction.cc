#include <algorithm>

#include "base/error.h"
#include "base/float_mode.h"
#include "fovea/core/random.h"
#include "inspect/inspection.h"
#include "open/model_parts.h"

namespace fovea::study {

std::vector<std::vector<double>> induction_scores(const model::Model& model, uint64_t seed) {
  const FloatMode mode;
  const model::Transformer& transformer = model::parts_of(model).transformer;
  const model::Spec& spec = transformer.spec;
  if (spec.input.kind != model::InputKind::tokens || spec.vocabulary < 1)
    fail(ErrorKind::Unsupported,
         "model: it reads no tokens; expected a text model, which can repeat random tokens");
  // Long enough for a stable mean; short enough to compute 15 heads in 30 layers quickly.
  const int64_t period = std::min<int64_t>(48, spec.context / 2);
  std::vector<int32_t> ids;
  Random random(seed, Stream::sampling);
  for (int64_t i = 0; i < period; ++i)
    ids.push_back(static_cast<int32_t>(random.word() % static_cast<uint32_t>(spec.vocabulary)));
  for (int64_t i = 0; i < period; ++i) ids.push_back(ids[static_cast<size_t>(i)]);
  const Inspection::State state(transformer, ids, ids);
  std::vector<std::vector<double>> scores;
  for (int64_t layer = 0; layer < state.stack_spec(model::AttentionKind::self).layers; ++layer)
    scores.push_back(induction(state, layer, period));
  return scores;
}

}  // namespace fovea::study
