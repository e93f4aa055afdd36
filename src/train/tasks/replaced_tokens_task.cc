#include "losses/replaced_tokens.h"

#include "base/fields.h"
#include "base/files.h"
#include "fovea/core/random.h"
#include "losses/token_rows.h"
#include "tasks/text_task.h"
#include "tensor/host_values.h"
#include "tensor/tape.h"

namespace fovea::train {
namespace {

constexpr uint32_t kDrawnSubstream = 19;  // of Stream::shuffle: numbers that draw tokens

// Masked tokens, with the numbers that draw the tokens that replace them.
class ReplacedExamples : public MaskedExamples {
 public:
  using MaskedExamples::MaskedExamples;

 protected:
  Batch make(const TokenRows& ids, const TokenRows& next, int64_t first) const override {
    Batch batch = MaskedExamples::make(ids, next, first);
    const int64_t T = batch.labels.dim(1);
    batch.meaning = DrawnTokens{tensor_from<float>(batch.labels.shape(), [&](int64_t i) {
      return uniform(philox(options_.seed, Stream::shuffle, kDrawnSubstream,
                            static_cast<uint64_t>(first * T + i))[0]);
    })};
    return batch;
  }
};

class ReplacedTokensTask : public TextTask {
 public:
  ReplacedTokensTask(const TrainOptions& options, Purpose purpose)
      : TextTask(options, purpose, Objective::replaced_tokens) {
    traits_.measures_steps = traits_.losses_fall = traits_.shares_steps = false;
    check_field(options_.from.empty(), "from",
                "given with replaced_tokens, which trains a new model and its generator; expected "
                "none");
    check_field(options_.distillation.teacher.empty(), "teacher",
                "given with replaced_tokens; expected another objective");
  }

  void shape(model::Spec& spec, const text::Tokenizer& tokenizer, const model::Origin& origin,
             const Say& say) override {
    check_field(spec.encoder && !spec.decoder && spec.input.kind == model::InputKind::tokens,
                "objective", "replaced_tokens does not suit the model; expected a text encoder");
    spec.head = {.kind = model::HeadKind::token,
                 .labels = 1,
                 .bias = true,
                 .transform = true,
                 .activation = spec.encoder->ffn.activation};
    TextTask::shape(spec, tokenizer, origin, say);
  }

  std::unique_ptr<Examples> examples(const model::Spec& spec,
                                     const text::TranslationTokenizers& tokenizers,
                                     const model::Origin& origin, bool read_only,
                                     const Say& say) override {
    generator_ =
        std::make_unique<model::Transformer>(generator_spec(spec, options_.generator_size));
    model::initialise(*generator_, options_.seed + 1);
    int64_t own = 0;
    for (const model::NamedParameter& each : own_parameters_of(*generator_))
      own += elements(each.parameter->shape);
    generator_numbers_ = static_cast<uint64_t>(own);
    say(fmt::format("a generator of {} parameters, and the embeddings of the model", own));
    return TextTask::examples(spec, tokenizers, origin, read_only, say);
  }

  // The weights, their gradients and two moments.
  PlannedWork planned_work() const override {
    return {.other_bytes = 4 * sizeof(float) * generator_numbers_};
  }
  std::vector<model::NamedParameter> own_parameters() const override {
    return own_parameters_of(*generator_);
  }

  StepLoss backward(const model::Transformer& model, int64_t step) const override {
    parts_ = {};
    StepLoss loss = TextTask::backward(model, step);
    loss.metrics = {{"generator_loss", parts_.generator}, {"detection_loss", parts_.detection}};
    return loss;
  }

  infer::Predictions predict_batches(const model::Transformer& model, DType compute, int64_t count,
                                     const std::function<Batch(int64_t n)>& batch) const override;

  void write_model(const std::string& folder, model::Transformer& model) const override {
    TextTask::write_model(folder, model);
    share_embeddings(model, *generator_);
    const std::string inner = folder + "/generator";
    make_directories(inner);
    model::save_model_files(inner, *generator_, setting().tokenizers.source.eos_id(), {});
    setting().tokenizers.source.save(inner);
  }

 protected:
  std::unique_ptr<Examples> make_examples(const text::Tokenizer& tokenizer, const model::Origin&,
                                          const WindowOptions& windows) const override {
    WindowOptions of_text = windows;
    const auto [masking, around] = masked_text(tokenizer, of_text);
    return std::make_unique<ReplacedExamples>(training_part(), held_out(), of_text, masking,
                                              around.before, around.after);
  }

  // Clark et al. 2020, section 3.1: the generator's loss + weight * the model's.
  Tensor loss(const model::Transformer& model, const Batch& batch, const model::Pass& pass,
              double divisor) const override {
    share_embeddings(model, *generator_);
    const ReplacedTokens replaced = replace_tokens(*generator_, batch, pass, divisor);
    // All batches have the same number of tokens.
    const auto tokens = static_cast<double>(batch.labels.size() * options_.accumulate);
    const UnitScope units({batch.units, nullptr});
    const Tensor detection = detection_loss(detection_logits(model, replaced.batch, pass),
                                            replaced.batch.labels, tokens);
    parts_.generator += number_of(replaced.generator_loss);
    parts_.detection += number_of(detection);
    return add(replaced.generator_loss,
               multiply(detection, full({1}, options_.detection_weight, DType::f64)));
  }

 private:
  struct Parts {
    double generator = 0, detection = 0;
  };
  std::unique_ptr<model::Transformer> generator_;
  uint64_t generator_numbers_ = 0;  // parameters of its own
  mutable Parts parts_;             // of the current step
};

infer::Predictions ReplacedTokensTask::predict_batches(
    const model::Transformer& model, DType compute, int64_t count,
    const std::function<Batch(int64_t n)>& batch) const {
  const NoGradient off;
  share_embeddings(model, *generator_);
  model::Pass pass;
  pass.compute = compute;
  infer::Predictions found;
  for (int64_t n = 0; n < count; ++n) {
    const ReplacedTokens replaced = replace_tokens(*generator_, batch(n), pass, 1);
    const HostValues<int32_t> labels(replaced.batch.labels);
    const Tensor logits = detection_logits(model, replaced.batch, pass);
    found.loss += number_of(detection_loss(logits, replaced.batch.labels, 1));
    found.labels += labels.size();
    const HostValues<float> z(logits);
    for (int64_t i = 0; i < labels.size(); ++i)
      found.choices.emplace_back(labels[i], z[i] > 0 ? 1 : 0);
  }
  found.loss /= static_cast<double>(std::max<int64_t>(1, found.labels));
  return found;
}

}  // namespace

std::unique_ptr<ExamplesTask> make_replaced_tokens_task(const TrainOptions& options,
                                                        ExamplesTask::Purpose purpose) {
  return std::make_unique<ReplacedTokensTask>(options, purpose);
}

}  // namespace fovea::train
