#include "train/task.h"

#include "base/error.h"

namespace fovea {

const char* name_of(Objective objective) {
  switch (objective) {
    case Objective::automatic: return "automatic";
    case Objective::next_token: return "next_token";
    case Objective::masked: return "masked";
    case Objective::spans: return "spans";
    case Objective::pairs: return "pairs";
    case Objective::labels: return "labels";
  }
  return "";
}

Objective objective_of(const TrainOptions& o, const Spec& spec) {
  if (o.objective != Objective::automatic) return o.objective;
  if (!o.pairs.empty()) return Objective::pairs;
  if (!o.labels.empty()) return Objective::labels;
  if (!spec.encoder) return Objective::next_token;
  return spec.decoder ? Objective::spans : Objective::masked;
}

std::unique_ptr<TrainingTask> open_task(const TrainOptions& options, const Spec& spec,
                                        TrainingTask::Purpose purpose) {
  const Objective objective = objective_of(options, spec);
  if (objective == Objective::pairs) return make_pairs_task(options, purpose);
  if (objective == Objective::labels) return make_labels_task(options, purpose);
  return make_text_task(options, purpose, objective);
}

}  // namespace fovea
