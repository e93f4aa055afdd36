#pragma once

#include "families/directory.h"
#include "fovea/tokenizer.h"
#include "fovea/train.h"
#include "plan/estimate.h"
#include "train/evaluation.h"

namespace fovea {

using Say = std::function<void(std::string)>;

// What a run is for: its data, and what is asked of the model.
class TrainingTask {
 public:
  // measure: all of the data is held out, and what else there must be is of no use.
  enum class Purpose { train, measure };
  TrainingTask(const TrainOptions& options, Purpose purpose)
      : options_(options), purpose_(purpose) {}
  virtual ~TrainingTask() = default;

  // Who is told how far the reading of long texts is, and may end it (ReadingStopped).
  virtual void watch(const std::function<bool(double fraction)>&) {}
  // A tokenizer made from the data, as options.tokenizer says.
  virtual Tokenizer make_tokenizer(const Spec& spec) = 0;
  // Refuses a model that cannot do it; gives it the head that the task needs, and says so.
  // `origin`: of the checkpoint that it comes from, or empty.
  virtual void shape(Spec& spec, const Tokenizer& tokenizer, const Origin& origin,
                     const Say& say) = 0;
  virtual Cost cost(const Spec& spec, DType compute) const = 0;
  // What config.json of a new model says besides its Spec.
  virtual Origin origin(const Spec&, const Tokenizer&) const { return {}; }
  // What the head's outputs stand for, once the model has its shape; empty = nothing to be told.
  virtual std::vector<std::string> labels() const { return {}; }
  // With `read_only` nothing is written anywhere. What it gives must not outlive the task.
  virtual std::unique_ptr<Examples> examples(const Spec& spec,
                                             const TranslationTokenizers& tokenizers,
                                             const Origin& origin, bool read_only,
                                             const Say& say) = 0;
  // More about a validation than its loss, by name.
  using Figures = std::vector<std::pair<std::string, double>>;
  virtual Figures figures(const Transformer&, const Score&, DType) const { return {}; }
  virtual std::vector<std::string> figure_names() const { return {}; }

 protected:
  TrainOptions options_;
  Purpose purpose_;
};

// The task of the options' data and objective, for a model of this kind. The data is read.
std::unique_ptr<TrainingTask> open_task(
    const TrainOptions& options, const Spec& spec,
    TrainingTask::Purpose purpose = TrainingTask::Purpose::train);

// The objective that `automatic` means.
Objective objective_of(const TrainOptions& options, const Spec& spec);
const char* name_of(Objective objective);

std::unique_ptr<TrainingTask> make_text_task(const TrainOptions& options,
                                             TrainingTask::Purpose purpose, Objective objective);
std::unique_ptr<TrainingTask> make_pairs_task(const TrainOptions& options,
                                              TrainingTask::Purpose purpose);
std::unique_ptr<TrainingTask> make_labels_task(const TrainOptions& options,
                                               TrainingTask::Purpose purpose);

}  // namespace fovea
