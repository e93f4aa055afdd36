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

// A task whose data are batches of examples, and whose loss is computed in one forward pass: texts,
// pairs of texts or labelled texts. Data and model are prepared in this order: make_tokenizer(),
// shape(), load(); after load() it is a TrainingTask.
class ExamplesTask : public TrainingTask {
 public:
  // measure: all data is held out; data that only training needs may be missing.
  enum class Purpose { train, measure };
  ExamplesTask(const TrainOptions& options, Purpose purpose)
      : options_(options), purpose_(purpose) {}

  // The callback receives the fraction of long texts read so far; it returns false to stop
  // (ReadingStopped).
  virtual void watch(const std::function<bool(double fraction)>&) {}
  // Makes a tokenizer from the data, according to options.tokenizer.
  virtual Tokenizer make_tokenizer(const Spec& spec) = 0;
  // Throws InvalidArgument if the model is unsuitable; sets the head that the task needs, and
  // reports changes to `say`. `origin`: the origin of the checkpoint, or empty.
  virtual void shape(Spec& spec, const Tokenizer& tokenizer, const Origin& origin,
                     const Say& say) = 0;
  virtual Cost cost(const Spec& spec, DType compute) const = 0;
  // Returns the keys of config.json that a new model needs in addition to its Spec.
  virtual Origin origin(const Spec&, const Tokenizer&) const { return {}; }
  // Returns the names of the head's outputs, valid after shape(); empty = the head has no labels.
  virtual std::vector<std::string> labels() const { return {}; }
  // Creates the examples from the data. They must not outlive the task. With `read_only` no files
  // are written.
  virtual std::unique_ptr<Examples> examples(const Spec& spec,
                                             const TranslationTokenizers& tokenizers,
                                             const Origin& origin, bool read_only,
                                             const Say& say) = 0;
  // Creates the examples for a model and its tokenizers; products are computed in `compute`.
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
  // Returns the loss of one pass, divided by `divisor`, the number of predictions in all passes of
  // the step: f64 [1]. The default is the cross-entropy of the labels.
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

// Returns the task for the data and objective of the options, and for a model with this Spec. Reads
// the data.
std::unique_ptr<ExamplesTask> open_task(
    const TrainOptions& options, const Spec& spec,
    ExamplesTask::Purpose purpose = ExamplesTask::Purpose::train);

// Returns the objective of the options; `automatic` selects one by the data and the Spec.
Objective objective_of(const TrainOptions& options, const Spec& spec);
const char* name_of(Objective objective);

std::unique_ptr<ExamplesTask> make_text_task(const TrainOptions& options,
                                             ExamplesTask::Purpose purpose, Objective objective);
std::unique_ptr<ExamplesTask> make_pairs_task(const TrainOptions& options,
                                              ExamplesTask::Purpose purpose);
std::unique_ptr<ExamplesTask> make_labels_task(const TrainOptions& options,
                                               ExamplesTask::Purpose purpose);

}  // namespace fovea
