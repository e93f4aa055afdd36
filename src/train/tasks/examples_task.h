#pragma once

#include <functional>
#include <memory>

#include "families/directory.h"
#include "fovea/tokenizer.h"
#include "fovea/train.h"
#include "train/examples.h"
#include "train/job.h"
#include "train/passes.h"
#include "train/task.h"

namespace fovea {

// A task whose data are examples in batches, and whose loss is that of one forward pass: texts,
// pairs of texts and labelled texts. Its data and its model are made for each other in this order:
// make_tokenizer(), shape(), load(); after load() it is a TrainingTask.
class ExamplesTask : public TrainingTask {
 public:
  // measure: all of the data is held out; other data that training needs may be absent.
  enum class Purpose { train, measure };
  ExamplesTask(const TrainOptions& options, Purpose purpose)
      : options_(options), purpose_(purpose) {}

  // `reading` receives how much of long texts is read; it returns false to stop (ReadingStopped).
  virtual void watch(const std::function<bool(double fraction)>&) {}
  // A tokenizer made from the data, as options.tokenizer says.
  virtual Tokenizer make_tokenizer(const Spec& spec) = 0;
  // Throws InvalidArgument if the model does not suit the task; gives it the head that the task
  // needs, and says so. `origin`: of the checkpoint that it comes from, or empty.
  virtual void shape(Spec& spec, const Tokenizer& tokenizer, const Origin& origin,
                     const Say& say) = 0;
  virtual Cost cost(const Spec& spec, DType compute) const = 0;
  // What config.json of a new model says besides its Spec.
  virtual Origin origin(const Spec&, const Tokenizer&) const { return {}; }
  // What the head's outputs stand for, once the model has its shape; empty = the head has no
  // labels.
  virtual std::vector<std::string> labels() const { return {}; }
  // Makes the examples of the data. They must not outlive the task. With `read_only` nothing is
  // written anywhere.
  virtual std::unique_ptr<Examples> examples(const Spec& spec,
                                             const TranslationTokenizers& tokenizers,
                                             const Origin& origin, bool read_only,
                                             const Say& say) = 0;
  // Takes what the task needs to train: examples() of these, for products in `compute`.
  struct Setting {
    Spec spec;
    TranslationTokenizers tokenizers;
    Origin origin;
    DType compute = DType::f32;
  };
  void load(Setting setting, bool read_only, const Say& say);
  const Examples& loaded() const { return *examples_; }

  StepLoss backward(const Transformer& model, int64_t step) const override;
  std::string first_bad_tensor(Transformer& model, int64_t step) const override;
  double steps_per_epoch() const override;
  bool evaluates() const override { return examples_->validation_batches() > 0; }
  Predictions predict(const Transformer& model) const override;
  std::string sample(const Transformer& model, int64_t step) const override;
  void write_fixed_files(const std::string& folder) const override;
  void write_model(const std::string& folder, Transformer& model) const override;

 protected:
  // The loss of one pass over `divisor`, which counts what all passes of the step ask for: f64 [1].
  // The default is the cross-entropy of the labels.
  virtual Tensor loss(const Transformer& model, const Batch& batch, const Pass& pass,
                      double divisor) const;

  TrainOptions options_;
  Purpose purpose_;

  DType compute() const { return setting_->compute; }

 private:
  PassOptions pass_options() const;

  std::optional<Setting> setting_;
  std::unique_ptr<Examples> examples_;
};

// The task of the options' data and objective, for a model of this kind. The data is read.
std::unique_ptr<ExamplesTask> open_task(
    const TrainOptions& options, const Spec& spec,
    ExamplesTask::Purpose purpose = ExamplesTask::Purpose::train);

// The objective that `automatic` means.
Objective objective_of(const TrainOptions& options, const Spec& spec);
const char* name_of(Objective objective);

std::unique_ptr<ExamplesTask> make_text_task(const TrainOptions& options,
                                             ExamplesTask::Purpose purpose, Objective objective);
std::unique_ptr<ExamplesTask> make_pairs_task(const TrainOptions& options,
                                              ExamplesTask::Purpose purpose);
std::unique_ptr<ExamplesTask> make_labels_task(const TrainOptions& options,
                                               ExamplesTask::Purpose purpose);

}  // namespace fovea
