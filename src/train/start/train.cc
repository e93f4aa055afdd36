#include "data/corpus.h"
#include "loop/run.h"
#include "start/prepare.h"

namespace fovea::train {

TrainPlan plan_training(const model::Spec& spec, const TrainOptions& options) {
  return plan_run([&](const Say& say) { return prepare(spec, options, true, say); });
}

TrainResult train(const model::Spec& spec, const TrainOptions& options,
                  const std::function<bool(const TrainPlan&)>& planned,
                  const std::function<bool(const TrainProgress&)>& progress,
                  const std::function<bool(double fraction)>& reading,
                  const std::function<void(Pause, double seconds)>& pausing) try {
  return run(
      options.out, [&](const Say& say) { return prepare(spec, options, false, say, reading); },
      planned, progress, pausing);
} catch (const ReadingStopped&) {
  return {.interrupted = true};
}

}  // namespace fovea::train
