#pragma once

#include <functional>
#include <memory>

#include "fovea/text/tokenizer.h"
#include "fovea/train/train.h"
#include "loading/loading.h"
#include "loop/examples.h"
#include "loop/job.h"
#include "loop/passes.h"
#include "loop/task.h"
#include "loop/teacher.h"
#include "transformer/prompt_images.h"

namespace fovea::train {

// Whether a model reads audio and writes text.
inline bool writes_speech(const model::Spec& spec) {
  return spec.input.kind == model::InputKind::audio && spec.decoder.has_value();
}

// The data of a task: its tokenizer, the model that suits it, and its examples.
class ExampleData {
 public:
  virtual ~ExampleData() = default;

  // Sets a callback that is called regularly while text files are read, with the fraction read so
  // far. If it returns false, reading throws ReadingStopped.
  virtual void watch(const std::function<bool(double fraction)>&) {}
  // Trains a tokenizer on the data, or opens one, as options.tokenizer requests. Without a model of
  // text, it has no meaning.
  virtual text::Tokenizer make_tokenizer(const model::Spec& spec) = 0;
  // Returns the special tokens that the data needs; those that the tokenizer lacks are added before
  // shape(), and the vocabulary of a checkpoint grows.
  virtual std::vector<std::string> needed_tokens() const { return {}; }
  // Sets the head that the task needs and, for a new model, the padding token. Calls `say` with
  // each note, such as a change of the head. Throws InvalidArgument if the model is unsuitable.
  // `origin` is that of the checkpoint; empty for a new model.
  virtual void shape(model::Spec& spec, const text::Tokenizer& tokenizer,
                     const model::Origin& origin, const Say& say) = 0;
  // Returns the origin of a new model: the contents of its config files that do not follow from its
  // Spec.
  virtual model::Origin origin(const model::Spec&, const text::Tokenizer&) const { return {}; }
  // Returns the names of the head's outputs, valid after shape(); empty = the head has no labels.
  virtual std::vector<std::string> labels() const { return {}; }
  // Returns the first text of the data, divided into its trained and its other parts, valid after
  // shape() or, for an encoder-decoder, load(). Empty = the task has no such texts.
  virtual std::vector<ExamplePart> example(const text::Tokenizer&) const { return {}; }
  // Creates the examples from the data. They must not outlive the task. If `read_only` is true, no
  // files are written.
  virtual std::unique_ptr<Examples> examples(const model::Spec& spec,
                                             const text::TranslationTokenizers& tokenizers,
                                             const model::Origin& origin, bool read_only,
                                             const Say& say) = 0;
};

// The work of a step, for the plan, after load().
struct PlannedWork {
  double passes_per_step = 1;     // as a multiple of mean_passes()
  uint64_t other_bytes = 0;       // of weights besides those of the model
  uint64_t generation_bytes = 0;  // of generating answers, before a step reads them
  // Besides those of the model: parameters, those that are trained (each 16 bytes: the weight, its
  // gradient and two moments), the operations of a pass, and the bytes of its tensors.
  int64_t other_parameters = 0, other_trained = 0;
  double other_flops = 0;
  uint64_t other_activation_bytes = 0;
};

// A task on batches of examples: texts, pairs of texts, labelled texts or conversations. The loss
// of a batch needs one forward pass. Call make_tokenizer() (if the model has no tokenizer), shape()
// and load() in this order. The functions of TrainingTask, except evaluation(), need load().
class ExamplesTask : public TrainingTask, public ExampleData {
 public:
  // measure: all data is held out; data that only training needs may be missing.
  enum class Purpose { train, measure };
  ExamplesTask(const TrainOptions& options, Purpose purpose, const TaskTraits& traits = {})
      : TrainingTask(traits), options_(options), purpose_(purpose) {
    traits_.shares_steps = true;
  }

  // For the plan: an estimate of the size of a pass, and the size after load(), when it is known.
  // The default of the latter is that of the largest of the first passes.
  virtual PassSize pass_size(const model::Spec& spec) const = 0;
  virtual PassSize loaded_size(const model::Spec& spec) const;
  virtual PlannedWork planned_work() const { return {}; }
  // Returns what the head predicts for a text, which config.json tells; automatic = not applicable.
  virtual model::ProblemType problem() const { return model::ProblemType::automatic; }

  // A model, its tokenizers, and the dtype of its matrix products.
  struct Setting {
    model::Spec spec;
    text::TranslationTokenizers tokenizers;
    model::Origin origin;
    DType compute = DType::f32;
  };
  void load(Setting setting, bool read_only, const Say& say);  // creates the examples
  // Limits evaluations to a part of the held-out data: evenly spaced batches.
  void limit_evaluation(double part) { evaluated_part_ = traits_.limits_evaluation ? part : 1; }
  // Sets the length of the run, which may depend on the examples.
  void set_length(int64_t steps, double epochs) {
    options_.steps = steps;
    options_.epochs = epochs;
  }
  // Sets the teacher of options.distillation.
  void learn_from(std::unique_ptr<Teacher> teacher) { teacher_ = std::move(teacher); }
  // Adds to the predictions for the held-out part what only the task knows.
  virtual void complete(infer::Predictions& found) const { found.names = labels(); }
  const Examples& loaded() const { return *examples_; }

  StepLoss backward(const model::Transformer& model, int64_t step) const override;
  std::string first_bad_tensor(model::Transformer& model, int64_t step) const override;
  double steps_per_epoch() const override;
  bool evaluates() const override { return examples_->validation_batches() > 0; }
  infer::Predictions predict(const model::Transformer& model) const override;
  // Returns the predictions for batches 0 to count - 1. The default predicts the labels.
  virtual infer::Predictions predict_batches(const model::Transformer& model, DType compute,
                                             int64_t count,
                                             const std::function<Batch(int64_t n)>& batch) const;
  bool writes_samples(const model::Transformer& model) const override;
  std::string sample(const model::Transformer& model, int64_t step) const override;
  void write_fixed_files(const std::string& folder) const override;
  // A snapshot of a run that trains adapters is also a directory of the adapters.
  std::map<std::string, std::string> snapshot_files(model::Transformer& model) const override;
  void write_model(const std::string& folder, model::Transformer& model) const override;

 protected:
  // Returns the loss of one pass, divided by `divisor`, the number of predictions in all passes of
  // the step: f64 [1]. The default is the cross-entropy of the labels, and
  // the divergence from the teacher if there is one.
  virtual Tensor loss(const model::Transformer& model, const Batch& batch, const model::Pass& pass,
                      double divisor) const;
  // The tokens that samples continue, and those that end a sample; without `ids`, there is no
  // sample. The default begins a new text, which no token ends.
  struct SamplePrompt {
    std::vector<int32_t> ids, ends;
    std::shared_ptr<const model::PromptImages> images = nullptr;  // null = none
  };
  virtual SamplePrompt sample_prompt(const model::Transformer& model) const;

  TrainOptions options_;
  Purpose purpose_;

  DType compute() const { return setting_->compute; }
  PassOptions pass_options() const;
  // Returns how many of `count` held-out items an evaluation reads: at least one, if there is one.
  int64_t evaluated(int64_t count) const;
  const Setting& setting() const { return *setting_; }

 private:
  // The loss with `on_policy`.
  Tensor divergence_loss(const model::Transformer& model, const Batch& batch,
                         const model::Pass& pass, double divisor) const;

  std::optional<Setting> setting_;
  std::unique_ptr<Examples> examples_;
  std::unique_ptr<Teacher> teacher_;
  double evaluated_part_ = 1;
};

// Returns the task for the data and objective of the options, and for a model with this Spec. Reads
// pairs and labelled texts; text files are read later.
std::unique_ptr<ExamplesTask> open_task(
    const TrainOptions& options, const model::Spec& spec,
    ExamplesTask::Purpose purpose = ExamplesTask::Purpose::train);

// Returns the special tokens that the task needs and the tokenizer lacks.
std::vector<std::string> missing_tokens(const text::Tokenizer& tokenizer, const ExamplesTask& task);
// Returns the tokenizer with the special tokens that the task needs. Reports those that are added.
text::Tokenizer with_needed_tokens(const text::Tokenizer& tokenizer, const ExamplesTask& task,
                                   const Say& say);

// Returns the objective of the options. If it is automatic, the data and the Spec determine it.
// Throws InvalidArgument if a chat template is given without conversations.
Objective objective_of(const TrainOptions& options, const model::Spec& spec);
// Returns the field to name if the objective does not suit the model: the objective if it is given,
// else the model or the data from which it follows.
const char* objective_field(const TrainOptions& options);
// Whether the objective is reward, dpo, kto, orpo or simpo.
bool learns_preferences(Objective objective);
// Whether the objective is ppo or grpo.
bool is_reinforcement(Objective objective);

std::unique_ptr<ExamplesTask> make_text_task(const TrainOptions& options,
                                             ExamplesTask::Purpose purpose, Objective objective);
std::unique_ptr<ExamplesTask> make_skip_gram_task(const TrainOptions& options,
                                                  ExamplesTask::Purpose purpose);
std::unique_ptr<ExamplesTask> make_replaced_tokens_task(const TrainOptions& options,
                                                        ExamplesTask::Purpose purpose);
std::unique_ptr<ExamplesTask> make_pairs_task(const TrainOptions& options,
                                              ExamplesTask::Purpose purpose);
std::unique_ptr<ExamplesTask> make_speech_task(const TrainOptions& options,
                                               ExamplesTask::Purpose purpose);
std::unique_ptr<ExamplesTask> make_labels_task(const TrainOptions& options,
                                               ExamplesTask::Purpose purpose);
std::unique_ptr<ExamplesTask> make_images_task(const TrainOptions& options,
                                               ExamplesTask::Purpose purpose);
std::unique_ptr<ExamplesTask> make_answers_task(const TrainOptions& options,
                                                ExamplesTask::Purpose purpose);
std::unique_ptr<ExamplesTask> make_chats_task(const TrainOptions& options,
                                              ExamplesTask::Purpose purpose);
std::unique_ptr<ExamplesTask> make_preferences_task(const TrainOptions& options,
                                                    ExamplesTask::Purpose purpose,
                                                    Objective objective);
std::unique_ptr<ExamplesTask> make_reinforcement_task(const TrainOptions& options,
                                                      ExamplesTask::Purpose purpose,
                                                      Objective objective);

}  // namespace fovea::train
