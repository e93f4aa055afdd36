#include "fovea/train/train_embedder.h"

#include "loop/run.h"
#include "tasks/embedder_task.h"

namespace fovea::train {

TrainPlan plan_embedder_training(const EmbedderTraining& training) {
  return plan_run([&](const Say& say) { return prepare_embedder(training, say); });
}

TrainResult train_embedder(const EmbedderTraining& training,
                           const std::function<bool(const TrainPlan&)>& planned,
                           const std::function<bool(const TrainProgress&)>& progress,
                           const std::function<void(Pause, double seconds)>& pausing) {
  return run(
      training.out, [&](const Say& say) { return prepare_embedder(training, say); }, planned,
      progress, pausing, training.ranks);
}

}  // namespace fovea::train
