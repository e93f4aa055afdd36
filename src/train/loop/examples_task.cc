#include "loop/examples_task.h"

#include <algorithm>

#include "base/fields.h"
#include "base/machine.h"
#include "data/answers.h"
#include "data/conversations.h"
#include "data/preferences.h"
#include "fovea/text/text_lines.h"
#include "generate/generate.h"
#include "loop/adapters.h"
#include "loop/check_options.h"
#include "loop/evaluation.h"
#include "losses/generalised_divergence.h"
#include "tokenizer/more_tokens.h"

namespace fovea::train {

bool learns_preferences(Objective objective) {
  return objective >= Objective::reward && objective <= Objective::simpo;
}

bool is_reinforcement(Objective objective) {
  return objective == Objective::ppo || objective == Objective::grpo;
}

namespace {

bool is_reward_model(const model::Spec& spec) {
  return spec.head.kind == model::HeadKind::sequence && spec.head.labels == 1;
}

Objective automatic_objective(const TrainOptions& o, const model::Spec& spec) {
  if (!o.pairs.empty() || (!o.data.empty() && writes_speech(spec))) return Objective::pairs;
  if (!o.labels.empty() || !o.images.empty()) return Objective::labels;
  if (const auto form = preference_form(o.data))
    return is_reward_model(spec)            ? Objective::reward
           : *form == PreferenceForm::pairs ? Objective::dpo
                                            : Objective::kto;
  // With a template, a first line that is no conversation is an error, which names the line.
  const bool templated =
      !o.chat_template.empty() && !o.data.empty() &&
      text::without_compression(weighted_file(o.data.front()).path).ends_with(".jsonl");
  if (templated || holds_conversations(o.data)) return Objective::chats;
  if (!spec.encoder) return Objective::next_token;
  return spec.decoder ? Objective::spans : Objective::masked;
}

}  // namespace

Objective objective_of(const TrainOptions& o, const model::Spec& spec) {
  const Objective chosen =
      o.objective == Objective::automatic ? automatic_objective(o, spec) : o.objective;
  const bool talks =
      chosen == Objective::chats || learns_preferences(chosen) || is_reinforcement(chosen);
  // An encoder reads the message of a user, and a decoder writes the answer.
  const Objective objective =
      chosen == Objective::chats && spec.encoder && spec.decoder ? Objective::pairs : chosen;
  check_field(talks || o.chat_template.empty(), "chat_template",
              "given without conversations; expected both");
  check_field(talks || o.validation_chats.empty(), "validation_chats",
              "given without conversations; expected both");
  check_field(talks || o.train_on == TrainOn::all, "train_on",
              "given without conversations; expected both");
  return objective;
}

const char* objective_field(const TrainOptions& options) {
  if (options.objective != Objective::automatic) return "objective";
  return options.from.empty() ? "data" : "from";
}

std::unique_ptr<ExamplesTask> open_task(const TrainOptions& options, const model::Spec& spec,
                                        ExamplesTask::Purpose purpose) {
  const Objective objective = objective_of(options, spec);
  check_loss(options, objective);
  check_preferences(options, objective);
  if (learns_preferences(objective)) return make_preferences_task(options, purpose, objective);
  if (objective == Objective::chats) return make_chats_task(options, purpose);
  if (objective == Objective::pairs)
    return writes_speech(spec) ? make_speech_task(options, purpose)
                               : make_pairs_task(options, purpose);
  check_field(objective != Objective::contrastive, "objective",
              "contrastive, but the model does not read images and texts; expected one that does, "
              "such as the preset clip-tiny");
  if (!options.images.empty()) return make_images_task(options, purpose);
  if (objective == Objective::labels)
    return hold_questions(options.labels) ? make_answers_task(options, purpose)
                                          : make_labels_task(options, purpose);
  if (is_reinforcement(objective)) return make_reinforcement_task(options, purpose, objective);
  if (objective == Objective::skip_gram) return make_skip_gram_task(options, purpose);
  if (objective == Objective::replaced_tokens) return make_replaced_tokens_task(options, purpose);
  return make_text_task(options, purpose, objective);
}

std::vector<std::string> missing_tokens(const text::Tokenizer& tokenizer,
                                        const ExamplesTask& task) {
  std::vector<std::string> missing;
  for (const std::string& token : task.needed_tokens()) {
    const auto id = tokenizer.id_of(token);
    if (!id || !tokenizer.is_special(*id)) missing.push_back(token);
  }
  return missing;
}

text::Tokenizer with_needed_tokens(const text::Tokenizer& tokenizer, const ExamplesTask& task,
                                   const Say& say) {
  const std::vector<std::string> missing = missing_tokens(tokenizer, task);
  if (missing.empty()) return tokenizer;
  say(fmt::format("special tokens are added: {}", fmt::join(missing, ", ")));
  return text::with_special_tokens(tokenizer, missing);
}

void ExamplesTask::load(Setting setting, bool read_only, const Say& say) {
  setting_ = std::move(setting);
  examples_ = examples(setting_->spec, setting_->tokenizers, setting_->origin, read_only, say);
}

PassSize ExamplesTask::loaded_size(const model::Spec& spec) const {
  constexpr double kPasses = 32;  // enough for a typical largest pass
  PassSize most;
  const auto passes = static_cast<int64_t>(std::clamp(examples_->passes_per_epoch(), 1.0, kPasses));
  for (int64_t n = 0; n < passes; ++n) {
    const Batch batch = examples_->training(n);
    const Tensor &source = batch.source.ids, &target = batch.target.ids;
    const int64_t rows = target ? target.dim(0) : source.dim(0),
                  length = std::max(target ? target.dim(1) : 0, source ? source.dim(1) : 0);
    most.varies |= n > 0 && (rows != most.batch || length != most.length);
    if (rows * length > most.batch * most.length) most.batch = rows, most.length = length;
    most.outputs = std::max(most.outputs, batch.predictions);
  }
  most.length = std::min(most.length, spec.context);
  return most;
}

namespace {

// Whether a layer sums the gradients of a pass as a whole: that of an expert, over its tokens in
// the pass. The balance of experts depends on the whole pass too.
bool has_experts(const model::Spec& spec) {
  const auto in = [](const std::optional<model::StackSpec>& stack) {
    return stack && stack->ffn.experts.count > 0;
  };
  return in(spec.encoder) || in(spec.decoder);
}

}  // namespace

PassOptions ExamplesTask::pass_options() const {
  return {.compute = setting_->compute,
          .passes = passes_of(options_, examples_->passes_per_epoch()),
          .seed = options_.seed,
          .recompute = options_.recompute,
          .window = window_of(options_, setting_->spec.context),
          .whole_passes = has_experts(setting_->spec),
          .sharing = sharing_};
}

Tensor ExamplesTask::loss(const model::Transformer& model, const Batch& batch,
                          const model::Pass& pass, double divisor) const {
  if (options_.loss) return label_loss(model, batch, pass, divisor, options_.loss);
  const auto smoothing = static_cast<float>(options_.label_smoothing);
  if (!teacher_) return label_loss(model, batch, pass, divisor, smoothing);
  const DistillationOptions& o = options_.distillation;
  if (o.on_policy >= 0) return divergence_loss(model, batch, pass, divisor);
  const Distillation distillation{(*teacher_)(batch), static_cast<float>(o.temperature),
                                  static_cast<float>(o.alpha)};
  return label_loss(model, batch, pass, divisor, smoothing, &distillation);
}

Tensor ExamplesTask::divergence_loss(const model::Transformer& model, const Batch& batch,
                                     const model::Pass& pass, double divisor) const {
  const DistillationOptions& o = options_.distillation;
  const TopProbabilities taught = (*teacher_)(batch);
  return label_loss(model, batch, pass, divisor, [&](const Tensor& logits, const Tensor&) {
    return generalised_divergence(logits, taught, {o.divergence_beta, o.temperature});
  });
}

TrainingTask::StepLoss ExamplesTask::backward(const model::Transformer& model, int64_t step) const {
  return backward_by_passes(*examples_, step, pass_options(),
                            [&](const Batch& batch, const model::Pass& pass, double divisor) {
                              return loss(model, batch, pass, divisor);
                            });
}

std::string ExamplesTask::first_bad_tensor(model::Transformer& model, int64_t step) const {
  return first_bad_tensor_of_passes(model, *examples_, step, pass_options());
}

double ExamplesTask::steps_per_epoch() const {
  const double passes = examples_->passes_per_epoch();
  return passes / mean_passes(options_, passes);
}

int64_t ExamplesTask::evaluated(int64_t count) const {
  const auto part = static_cast<int64_t>(evaluated_part_ * static_cast<double>(count));
  return std::min(count, std::max<int64_t>(1, part));
}

infer::Predictions ExamplesTask::predict(const model::Transformer& model) const {
  const int64_t all = examples_->validation_batches(), batches = evaluated(all);
  infer::Predictions found = predict_batches(model, setting_->compute, batches, [&](int64_t n) {
    predicted(static_cast<double>(n) / static_cast<double>(batches));
    return examples_->validation(n * all / batches);
  });
  // The loss may cover only some windows. Bits per byte use the tokens per byte of the complete
  // held-out part.
  found.labels = examples_->held_out.predictions;
  found.bytes = examples_->held_out.bytes;
  complete(found);
  return found;
}

infer::Predictions ExamplesTask::predict_batches(
    const model::Transformer& model, DType dtype, int64_t count,
    const std::function<Batch(int64_t n)>& batch) const {
  return train::predict(model, dtype, evaluation(), count, batch, options_.ranks);
}

bool ExamplesTask::writes_samples(const model::Transformer& model) const {
  const bool generates =
      !model.spec.encoder && model.spec.head.kind == model::HeadKind::language_model;
  return generates && options_.sample_tokens > 0;
}

std::string ExamplesTask::sample(const model::Transformer& model, int64_t step) const {
  if (!writes_samples(model)) return {};
  infer::GenerateOptions options;
  options.max_tokens = options_.sample_tokens;
  options.sampling.seed = options_.seed + static_cast<uint64_t>(step);
  const SamplePrompt prompt = sample_prompt(model);
  if (prompt.ids.empty()) return {};
  infer::GenerationRules rules;
  rules.ends = prompt.ends;
  const infer::Generator generator{model, &setting_->tokenizers.source, rules, setting_->compute};
  return infer::generate(generator, infer::ImagePrompt{prompt.ids, prompt.images}, options, {},
                         available_memory() / 2)[0]
      .text;
}

ExamplesTask::SamplePrompt ExamplesTask::sample_prompt(const model::Transformer& model) const {
  return {.ids = infer::prompt_ids(setting_->tokenizers.source, model.spec, ""), .ends = {}};
}

void ExamplesTask::write_fixed_files(const std::string& folder) const {
  if (teacher_ && traits_.repeats) teacher_->keep_outputs();
  if (traits_.reads_text) setting_->tokenizers.source.save(folder);
}

std::map<std::string, std::string> ExamplesTask::snapshot_files(model::Transformer& model) const {
  if (options_.lora.rank == 0) return {};
  return model::adapter_files(model, setting_->origin,
                              facts_of(options_.lora, base_of(options_.from)));
}

void ExamplesTask::write_model(const std::string& folder, model::Transformer& model) const {
  if (options_.lora.rank > 0)
    return model::save_adapter(folder, model, setting_->origin,
                               facts_of(options_.lora, base_of(options_.from)));
  const auto end = traits_.reads_text ? setting_->tokenizers.source.eos_id() : std::nullopt;
  model::save_model_files(folder, model, end, setting_->origin);
}

}  // namespace fovea::train
