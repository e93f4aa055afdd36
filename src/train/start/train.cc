#include "data/corpus.h"
#include "loop/leader.h"
#include "loop/run.h"
#include "start/prepare.h"

namespace fovea::train {

TrainPlan plan_training(const model::Spec& spec, const TrainOptions& options) {
  return plan_run([&](const Say& say) { return prepare(spec, options, true, say); });
}

TrainResult train(const model::Spec& spec, const TrainOptions& given,
                  const std::function<bool(const TrainPlan&)>& planned,
                  const std::function<bool(const TrainProgress&)>& progress,
                  const std::function<bool(double fraction)>& reading,
                  const std::function<void(Pause, double seconds)>& pausing) try {
  TrainOptions options = given;
  std::vector<std::string> agreed;
  const auto note = [&](std::string text) { agreed.push_back(std::move(text)); };
  if (options.ranks != nullptr && !agree_on_bits(*options.ranks, note) &&
      options.precision == Precision::automatic && snapshots(options.out).empty())
    options.precision = Precision::fp32;
  return run(
      options.out,
      [&](const Say& say) {
        for (const std::string& text : agreed) say(text);
        return prepare(spec, options, !leads(options.ranks), say, reading);
      },
      planned, progress, pausing, options.ranks);
} catch (const ReadingStopped&) {
  return {.interrupted = true};
}

}  // namespace fovea::train
