#include <algorithm>
#include <cmath>

#include "base/fields.h"
#include "base/files.h"
#include "base/hash.h"
#include "base/random.h"
#include "chat/builtin_templates.h"
#include "generate/generate.h"
#include "metrics/correlation.h"
#include "model/adapters.h"
#include "tensor/tape.h"
#include "train/advantages.h"
#include "train/policy.h"
#include "train/rewards.h"
#include "train/tasks/conversation_text.h"
#include "train/tasks/examples_task.h"
#include "train/tasks/prompt_examples.h"
#include "train/tasks/special_tokens.h"
#include "train/write_answers.h"

namespace fovea {
namespace {

// A prompt and its tokens.
struct PromptText {
  Prompt prompt;
  std::vector<int32_t> ids;
};

// The seed of the answers to the n-th use of a prompt in the run.
uint64_t seed_of_answers(uint64_t seed, uint64_t n) {
  constexpr uint32_t kSubstream = 1u << 31;  // of no answer
  const auto words = philox(seed, Stream::sampling, kSubstream, n);
  return static_cast<uint64_t>(words[0]) << 32 | words[1];
}

// What changes from step to step besides the weights.
struct ReinforcementState {
  WrittenBatch batch;
  int64_t left = 0;  // steps on `batch` that are still to be taken
  double kl_weight = 0;
  std::optional<Transformer> reference;
  Linear value_head;  // of ppo
};

// Writes answers to prompts and trains those with high rewards: GRPO and PPO.
class ReinforcementTask : public ExamplesTask {
 public:
  ReinforcementTask(const TrainOptions& options, Purpose purpose, Objective objective)
      : ExamplesTask(options, purpose),
        o_(options.reinforcement),
        ppo_(objective == Objective::ppo),
        data_(read_prompts(options.data)),
        state_(std::make_unique<ReinforcementState>()) {
    check_field(purpose == Purpose::train, "objective",
                "{} writes answers in training only; expected another objective", name());
    if (!o_.validation_prompts.empty()) {
      validation_ = read_prompts(o_.validation_prompts);
      data_.hash ^= hash_bytes(fmt::format("validation {}", validation_.hash));
    }
  }

  Tokenizer make_tokenizer(const Spec&) override { return Tokenizer::open(options_.tokenizer); }

  void shape(Spec& spec, const Tokenizer& tokenizer, const Origin& origin,
             const Say& say) override {
    check_field(
        spec.decoder && !spec.encoder && spec.head.kind == HeadKind::language_model, "objective",
        "{} does not suit the model; expected a decoder with a language-model head", name());
    chat_ = open_chat(options_.chat_template, options_.from, tokenizer);
    check_tokens_of_template(tokenizer);
    const ConversationText text(chat_, tokenizer, TrainOn::last);
    const double share = o_.validation_prompts.empty() ? options_.validation : 0;
    const auto before = [&](size_t i) { return std::floor(static_cast<double>(i) * share); };
    for (size_t i = 0; i < data_.all.size(); ++i)
      add(std::move(data_.all[i]), text, spec, before(i + 1) > before(i) ? held_out_ : training_);
    for (Prompt& prompt : validation_.all) add(std::move(prompt), text, spec, held_out_);
    if (long_ > 0)
      say(fmt::format("{} prompts that leave no room for an answer in the context are skipped",
                      long_));
    if (training_.empty())
      fail(ErrorKind::BadFile, "{}: contains no prompt for training; expected at least one",
           options_.data.front());
    if (end_ids_of(origin, tokenizer).empty())
      say("the model has no end token, so all answers have the maximum length");
  }

  PassSize pass_size(const Spec& spec) const override {
    return {std::min(options_.batch, o_.prompts * o_.answers),
            std::min(spec.context, longest_ + o_.answer_tokens)};
  }
  double passes_per_step() const override {
    const auto answers = static_cast<double>(o_.prompts * o_.answers),
               updates = static_cast<double>(training().updates());
    const double forward = 1.0 / 3;  // of the time of a pass: writing, and each reading
    return answers / static_cast<double>(pass_size(setting().spec).batch) *
           (1 / static_cast<double>(o_.minibatches) + 2 * forward / updates);
  }
  uint64_t other_bytes() const override {
    const bool copies = training().kl_weight() > 0 && options_.lora.rank == 0;
    return rewards_->bytes() + (copies ? copy_bytes_ : 0);
  }

  std::unique_ptr<Examples> examples(const Spec& spec, const TranslationTokenizers& tokenizers,
                                     const Origin& origin, bool, const Say&) override {
    rewards_ = std::make_unique<Rewards>(o_, compute());
    for (const auto* part : {&training_, &held_out_})
      for (const PromptText& each : *part) rewards_->require(each.prompt);
    rules_ = rules_of(origin, end_ids_of(origin, tokenizers.source));
    padding_ = static_cast<int32_t>(spec.padding >= 0 ? spec.padding
                                                      : end_id(tokenizers.source).value_or(0));
    state_->kl_weight = training().kl_weight();
    if (ppo_) add_value_head(spec);
    Transformer shapes(spec);
    copy_bytes_ = static_cast<uint64_t>(parameter_count(shapes)) * sizeof(float);
    auto examples = std::make_unique<PromptExamples>(std::ssize(training_), o_.prompts,
                                                     training().updates(), options_.seed);
    examples->learnt = part_of(training_, o_.answers);
    examples->held_out = part_of(held_out_, 1);
    examples->hash =
        data_.hash ^ rewards_->hash() ^ hash_bytes(chat_ ? chat_->choose({}).source() : "");
    return examples;
  }

  EvaluationTask evaluation() const override { return evaluation_task("written_answers"); }
  bool evaluates() const override { return !held_out_.empty(); }
  bool evaluates_start() const override { return true; }
  bool measures_steps() const override { return false; }
  std::vector<NamedParameter> own_parameters() const override {
    if (!ppo_) return {};
    return {{"value_head.weight", &state_->value_head.weight},
            {"value_head.bias", &state_->value_head.bias}};
  }

  std::map<std::string, Tensor> state() const override {
    std::map<std::string, Tensor> all;
    if (state_->left > 0) all = state_->batch.state();
    all["answers.kl_weight"] = full({1}, state_->kl_weight, DType::f64);
    return all;
  }
  void restore(const Snapshot& snapshot) const override {
    state_->kl_weight = number_of(snapshot.tensors.tensor("answers.kl_weight"));
    const int64_t updates = training().updates(), taken = snapshot.step % updates;
    state_->left = taken == 0 ? 0 : updates - taken;
    if (taken > 0) state_->batch = WrittenBatch::restored(snapshot);
  }

  StepLoss backward(const Transformer& model, int64_t step) const override {
    const int64_t updates = training().updates(), n = step / updates;
    MetricValues written;
    if (step % updates == 0) written = explore(model, n);
    state_->left = updates - step % updates - 1;
    StepLoss found = backward_on_batch(model, ppo_ ? &state_->value_head : nullptr, state_->batch,
                                       n, step % updates, training());
    found.metrics.insert(found.metrics.begin(), written.begin(), written.end());
    return found;
  }
  std::string first_bad_tensor(Transformer& model, int64_t step) const override {
    return TrainingTask::first_bad_tensor(model, step);
  }

  Predictions predict(const Transformer& model) const override {
    std::vector<const PromptText*> asked;
    const int64_t all = std::ssize(held_out_),
                  most = o_.evaluation_prompts > 0 ? std::min(o_.evaluation_prompts, all) : all;
    for (int64_t i = 0; i < most; ++i)
      asked.push_back(&held_out_[static_cast<size_t>(i * all / most)]);
    const std::vector<Generation> answers =
        written(model, asked, std::vector<uint64_t>(asked.size()),
                {.tokens = o_.answer_tokens, .temperature = 0, .compute = compute()});
    Predictions found;
    found.written_rewards = (*rewards_)(judged(asked, answers)).total;
    double tokens = 0;
    for (const Generation& answer : answers) tokens += static_cast<double>(answer.ids.size());
    found.answer_tokens = tokens / static_cast<double>(answers.size());
    return found;
  }

  std::string sample(const Transformer& model, int64_t) const override {
    if (options_.sample_tokens <= 0) return {};
    const PromptText& first = held_out_.empty() ? training_.front() : held_out_.front();
    const std::vector<Generation> answers =
        written(model, {&first}, {0},
                {.tokens = std::min(o_.answer_tokens, options_.sample_tokens),
                 .temperature = 0,
                 .compute = compute()});
    return setting().tokenizers.source.decode(first.ids) + answers[0].text;
  }

  void write_fixed_files(const std::string& folder) const override {
    ExamplesTask::write_fixed_files(folder);
    if (chat_) write_file_atomically(folder + "/chat_template.jinja", chat_->choose({}).source());
  }

 private:
  const char* name() const { return ppo_ ? "ppo" : "grpo"; }

  PolicyTraining training() const {
    return {.options = o_,
            .ppo = ppo_,
            .compute = compute(),
            .batch = options_.batch,
            .padding = padding_,
            .seed = options_.seed,
            .recompute = options_.recompute};
  }

  void check_tokens_of_template(const Tokenizer& tokenizer) const {
    const BuiltinTemplate* const builtin = find_builtin_template(options_.chat_template);
    if (builtin == nullptr) return;
    for (const std::string& token : builtin->tokens)
      check_field(tokenizer.id_of(token).has_value(), "chat_template",
                  "the tokenizer lacks the special token {}; expected the template on which the "
                  "model was trained",
                  token);
  }

  void add(Prompt prompt, const ConversationText& text, const Spec& spec,
           std::vector<PromptText>& part) {
    check_field(chat_.has_value() || prompt.conversation.plain.has_value(), "chat_template",
                "not given, but {} is a conversation and the model has no template; expected {}, "
                "or a file",
                prompt.conversation.place, builtin_template_names());
    std::vector<int32_t> ids = text.prompt(prompt.conversation);
    check(!ids.empty(), "{}: the prompt has no tokens; expected a text", prompt.conversation.place);
    if (std::ssize(ids) >= spec.context) {
      ++long_;
      return;
    }
    longest_ = std::max(longest_, std::ssize(ids));
    part.push_back({std::move(prompt), std::move(ids)});
  }

  Examples::Part part_of(const std::vector<PromptText>& prompts, int64_t answers) const {
    Examples::Part part;
    part.sequences = std::ssize(prompts);
    for (const PromptText& each : prompts)
      part.tokens += (std::ssize(each.ids) + o_.answer_tokens) * answers;
    return part;
  }

  void add_value_head(const Spec& spec) const {
    state_->value_head = Linear(spec.width, 1, true);
    state_->value_head.weight.value = zeros({1, spec.width});
    state_->value_head.bias.value = zeros({1});
  }

  std::vector<Generation> written(const Transformer& model,
                                  const std::vector<const PromptText*>& prompts,
                                  const std::vector<uint64_t>& seeds,
                                  const Writing& writing) const {
    std::vector<const std::vector<int32_t>*> ids;
    for (const PromptText* each : prompts) ids.push_back(&each->ids);
    return write_answers(model, setting().tokenizers.source, rules_, ids, seeds, writing);
  }

  static std::vector<WrittenAnswer> judged(const std::vector<const PromptText*>& prompts,
                                           const std::vector<Generation>& answers) {
    const size_t each = answers.size() / prompts.size();
    std::vector<WrittenAnswer> all;
    for (size_t i = 0; i < answers.size(); ++i)
      all.push_back({&prompts[i / each]->prompt, answers[i].text, std::ssize(answers[i].ids)});
    return all;
  }

  // Writes the n-th batch of answers and computes all that its steps compare with. Returns numbers
  // for the log.
  MetricValues explore(const Transformer& model, int64_t n) const {
    std::vector<const PromptText*> prompts;
    std::vector<uint64_t> seeds;
    for (const size_t i : dynamic_cast<const PromptExamples&>(loaded()).prompts(n)) {
      seeds.push_back(seed_of_answers(options_.seed,
                                      static_cast<uint64_t>(n * o_.prompts + std::ssize(prompts))));
      prompts.push_back(&training_[i]);
    }
    const std::vector<Generation> answers = written(model, prompts, seeds,
                                                    {.answers = o_.answers,
                                                     .tokens = o_.answer_tokens,
                                                     .temperature = o_.sampling_temperature,
                                                     .compute = compute()});
    const Rewards::Scores scores = (*rewards_)(judged(prompts, answers));
    WrittenBatch& batch = state_->batch;
    batch = collected(prompts, answers);
    read(model, batch);
    MetricValues metrics = metrics_of(scores, answers);
    if (ppo_) {
      set_advantages_by_token(scores.total, batch);
    } else {
      set_group_advantages(scores.total, batch);
    }
    return metrics;
  }

  WrittenBatch collected(const std::vector<const PromptText*>& prompts,
                         const std::vector<Generation>& answers) const {
    const size_t each = answers.size() / prompts.size();
    WrittenBatch batch;
    for (size_t i = 0; i < answers.size(); ++i) {
      const Generation& answer = answers[i];
      std::vector<int32_t>& ids = batch.ids.emplace_back(prompts[i / each]->ids);
      batch.prompts.push_back(static_cast<int32_t>(ids.size()));
      ids.insert(ids.end(), answer.ids.begin(), answer.ids.end());
      if (answer.end_id >= 0) ids.push_back(answer.end_id);
      batch.trained.push_back(answer.end_id >= 0 || !o_.mask_truncated ? 1 : 0);
    }
    return batch;
  }

  // Reads the answers with the policy, if its numbers are needed before the first step, and with
  // the reference.
  void read(const Transformer& model, WrittenBatch& batch) const {
    if (ppo_ || training().updates() > 1) {
      TokenNumbers found =
          read_tokens(model, ppo_ ? &state_->value_head : nullptr, batch, training());
      batch.old = std::move(found.log_p);
      batch.values = std::move(found.values);
    }
    if (training().kl_weight() > 0)
      batch.reference = read_tokens(reference(model), nullptr, batch, training()).log_p;
  }

  // Returns the initial model: the weights without the adapters, or those of `from`.
  const Transformer& reference(const Transformer& model) const {
    if (!state_->reference && options_.lora.rank > 0) {
      state_->reference = model;  // shares the frozen weights
      for (const auto& [name, layer] : linears_of(*state_->reference)) layer->adapter = {};
    } else if (!state_->reference) {
      state_->reference = open_model_files(options_.from, Weights::mapped).model;
    }
    return *state_->reference;
  }

  void set_group_advantages(const std::vector<double>& rewards, WrittenBatch& batch) const {
    const std::vector<double> advantages = group_advantages(rewards, o_.answers, o_.advantage);
    for (size_t i = 0; i < batch.count(); ++i)
      batch.advantages.insert(batch.advantages.end(), static_cast<size_t>(batch.length(i)),
                              static_cast<float>(advantages[i]));
  }

  // The reward of a token is -kl_weight (log policy - log reference), and the last one of an answer
  // also has the answer's reward.
  void set_advantages_by_token(const std::vector<double>& rewards, WrittenBatch& batch) const {
    const auto limited = [](double x, double most) {
      return most > 0 ? std::clamp(x, -most, most) : x;
    };
    const std::vector<int64_t> starts = batch.starts();
    std::vector<double> all;
    double divergence = 0;
    for (size_t i = 0; i < batch.count(); ++i) {
      std::vector<double> of_tokens, values;
      for (int64_t t = starts[i]; t < starts[i + 1]; ++t) {
        const auto at = static_cast<size_t>(t);
        const double d =
            batch.reference.empty() ? 0 : static_cast<double>(batch.old[at]) - batch.reference[at];
        divergence += d / static_cast<double>(batch.count());
        of_tokens.push_back(-state_->kl_weight * d);
        values.push_back(batch.values[at]);
      }
      of_tokens.back() += limited(rewards[i], o_.score_clip);
      for (double& reward : of_tokens) reward = limited(reward, o_.reward_clip);
      const std::vector<double> advantages =
          generalised_advantages(of_tokens, values, o_.gamma, o_.lambda);
      for (size_t t = 0; t < values.size(); ++t)
        batch.returns.push_back(static_cast<float>(advantages[t] + values[t]));
      all.insert(all.end(), advantages.begin(), advantages.end());
    }
    if (o_.whiten) whiten(all);
    batch.advantages.assign(all.begin(), all.end());
    if (o_.kl_target > 0)
      state_->kl_weight = adapted_kl_weight(state_->kl_weight, divergence, o_.kl_target,
                                            static_cast<int64_t>(batch.count()), o_.kl_horizon);
  }

  MetricValues metrics_of(const Rewards::Scores& scores,
                          const std::vector<Generation>& answers) const {
    const auto count = static_cast<double>(answers.size());
    const double mean = mean_of(scores.total);
    double squares = 0, tokens = 0, ended = 0;
    for (const double reward : scores.total) squares += (reward - mean) * (reward - mean);
    for (const Generation& answer : answers) {
      tokens += static_cast<double>(answer.ids.size());
      ended += answer.end_id >= 0;
    }
    MetricValues metrics = {{"reward", mean}, {"reward_deviation", std::sqrt(squares / count)}};
    for (size_t i = 0; i < scores.by_name.size(); ++i)
      metrics.emplace_back("reward_" + rewards_->names()[i], mean_of(scores.by_name[i]));
    metrics.emplace_back("answer_tokens", tokens / count);
    metrics.emplace_back("ended", ended / count);
    if (ppo_) metrics.emplace_back("kl_weight", state_->kl_weight);
    return metrics;
  }

  const ReinforcementOptions o_;
  bool ppo_;
  Prompts data_, validation_;
  std::optional<ModelChat> chat_;
  std::vector<PromptText> training_, held_out_;
  std::unique_ptr<Rewards> rewards_;
  GenerationRules rules_;
  int32_t padding_ = 0;
  int64_t longest_ = 0, long_ = 0;  // tokens of the longest prompt; number of prompts too long
  uint64_t copy_bytes_ = 0;         // of a second copy of the weights
  std::unique_ptr<ReinforcementState> state_;
};

}  // namespace

std::unique_ptr<ExamplesTask> make_reinforcement_task(const TrainOptions& options,
                                                      ExamplesTask::Purpose purpose,
                                                      Objective objective) {
  return std::make_unique<ReinforcementTask>(options, purpose, objective);
}

}  // namespace fovea
