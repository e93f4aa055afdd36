#include <algorithm>
#include <cmath>

#include "base/append.h"
#include "base/fields.h"
#include "base/files.h"
#include "base/hash.h"
#include "chat/builtin_templates.h"
#include "fovea/core/random.h"
#include "generate/generate.h"
#include "loop/adapters.h"
#include "loop/conversation_text.h"
#include "loop/examples_task.h"
#include "loop/generate_answers.h"
#include "loop/leader.h"
#include "loop/policy.h"
#include "loop/shared_evaluation.h"
#include "loop/special_tokens.h"
#include "losses/advantages.h"
#include "metrics/correlation.h"
#include "open/directory.h"
#include "rewards/rewards.h"
#include "tasks/episodes.h"
#include "tasks/prompt_examples.h"
#include "tasks/prompt_texts.h"
#include "tensor/tape.h"

namespace fovea::train {
namespace {

// What changes from step to step besides the weights.
struct ReinforcementState {
  RolloutBatch batch;
  int64_t left = 0;  // steps on `batch` that are still to be taken
  double kl_weight = 0;
  std::optional<model::Transformer> reference;
  model::Linear value_head;  // of ppo
};

// Writes answers to prompts and trains those with high rewards: GRPO and PPO.
class ReinforcementTask : public ExamplesTask {
 public:
  ReinforcementTask(const TrainOptions& options, Purpose purpose, Objective objective)
      : ExamplesTask(options, purpose,
                     {.measures_steps = false, .evaluates_start = true, .losses_fall = false}),
        o_(options.reinforcement),
        ppo_(objective == Objective::ppo),
        data_(read_prompts(options.data)),
        data_hash_(data_.hash),
        state_(std::make_unique<ReinforcementState>()) {
    check_field(purpose == Purpose::train, "objective",
                "{} writes answers in training only; expected another objective", name());
    if (!o_.validation_prompts.empty()) {
      validation_ = read_prompts(o_.validation_prompts);
      check_unweighted(validation_.files, "validation_prompts");
      data_hash_ ^= hash_bytes(fmt::format("validation {}", validation_.hash));
    }
  }

  text::Tokenizer make_tokenizer(const model::Spec&) override {
    return text::Tokenizer::open(options_.tokenizer);
  }

  void shape(model::Spec& spec, const text::Tokenizer& tokenizer, const model::Origin& origin,
             const Say& say) override {
    const bool writes = spec.decoder && spec.head.kind == model::HeadKind::language_model &&
                        spec.input.kind == model::InputKind::tokens;
    check_field(writes, "objective",
                "{} does not suit the model; expected a decoder or an encoder-decoder for text, "
                "with a language-model head",
                name());
    translates_ = spec.encoder.has_value();
    check_field(!translates_ || options_.chat_template.empty(), "chat_template",
                "does not suit an encoder-decoder; expected none");
    check_field(!translates_ || !o_.environment, "environment",
                "does not suit an encoder-decoder; expected a decoder");
    if (!translates_) chat_ = open_chat(options_.chat_template, options_.from, tokenizer);
    check_tokens_of_template(tokenizer);
    texts_ = prompt_texts(std::move(data_), std::move(validation_), options_.validation, spec,
                          chat_, tokenizer, say);
    if (ends_of(origin, tokenizer).empty())
      say("the model has no end token, so all answers have the maximum length");
  }

  std::vector<ExamplePart> example(const text::Tokenizer& tokenizer) const override {
    return {{tokenizer.decode(texts_.training.front().ids), false, 0}};
  }

  PassSize pass_size(const model::Spec& spec) const override {
    const int64_t length = translates_ ? std::max(texts_.longest, o_.answer_tokens + 1)
                                       : texts_.longest + o_.answer_tokens;
    const int64_t answers = std::min(options_.batch, o_.prompts * o_.generations);
    return {.batch = answers,
            .length = std::min(spec.context, length),
            .outputs = answers * (o_.answer_tokens + 1),  // with an end token
            .summed_passes = passes_per_update(answers)};
  }
  int64_t passes_per_update(int64_t answers) const {
    const int64_t most =
        (o_.prompts * o_.generations + o_.minibatches - 1) / o_.minibatches;  // of an update
    return (most + answers - 1) / answers;
  }
  PassSize loaded_size(const model::Spec& spec) const override { return pass_size(spec); }
  PlannedWork planned_work() const override {
    const auto answers = static_cast<double>(o_.prompts * o_.generations),
               updates = static_cast<double>(training().updates());
    const double forward = 1.0 / 3;  // of the time of a pass: generation, and each reading
    const double passes = answers / static_cast<double>(pass_size(setting().spec).batch) *
                          (1 / static_cast<double>(o_.minibatches) + 2 * forward / updates);
    const bool copies = training().kl_weight() > 0 && options_.lora.rank == 0;
    return {.passes_per_step = passes,
            .other_bytes = rewards_->bytes() + (copies ? copy_bytes_ : 0),
            .generation_bytes = generation_bytes_};
  }

  std::unique_ptr<Examples> examples(const model::Spec& spec,
                                     const text::TranslationTokenizers& tokenizers,
                                     const model::Origin& origin, bool, const Say&) override {
    rewards_ = std::make_unique<Rewards>(o_, compute());
    for (const auto* part : {&texts_.training, &texts_.held_out})
      for (const PromptText& each : *part) rewards_->require(each.prompt);
    set_rules(origin, tokenizers.target);
    if (o_.environment)
      player_.emplace(o_, ConversationText(chat_, tokenizers.target, TrainOn::last), rules_.ends,
                      spec.context, options_.ranks);
    padding_ = static_cast<int32_t>(spec.padding >= 0 ? spec.padding
                                                      : end_id(tokenizers.source).value_or(0));
    state_->kl_weight = training().kl_weight();
    if (ppo_) add_value_head(spec);
    model::Transformer shapes(spec);
    copy_bytes_ = static_cast<uint64_t>(model::parameter_count(shapes)) * sizeof(float);
    generation_bytes_ = std::max(
        train::generation_bytes(shapes, o_.prompts, texts_.longest, most_tokens(), sampling()),
        train::generation_bytes(shapes, std::ssize(held_out_prompts()), texts_.longest,
                                most_tokens(), greedy()));
    auto examples = std::make_unique<PromptExamples>(texts_.groups, o_.prompts,
                                                     training().updates(), options_.seed);
    examples->learnt = {
        .sequences = std::ssize(texts_.training),
        .tokens = (texts_.tokens() + examples->per_epoch() * o_.answer_tokens) * o_.generations};
    examples->held_out.sequences = std::ssize(texts_.held_out);
    for (const PromptText& each : texts_.held_out)
      examples->held_out.tokens += std::ssize(each.ids) + o_.answer_tokens;
    examples->hash =
        data_hash_ ^ rewards_->hash() ^ hash_bytes(chat_ ? chat_->choose({}).source() : "");
    return examples;
  }

  infer::EvaluationTask evaluation() const override {
    return infer::evaluation_task("generated_answers");
  }
  bool evaluates() const override { return !texts_.held_out.empty(); }
  std::vector<model::NamedParameter> own_parameters() const override {
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
  void restore(const model::Snapshot& snapshot) const override {
    state_->kl_weight = number_of(snapshot.tensors.tensor("answers.kl_weight"));
    const int64_t updates = training().updates(), taken = snapshot.step % updates;
    state_->left = taken == 0 ? 0 : updates - taken;
    if (taken > 0) state_->batch = RolloutBatch::restored(snapshot);
  }

  StepLoss backward(const model::Transformer& model, int64_t step) const override {
    const int64_t updates = training().updates(), n = step / updates;
    infer::MetricValues generated;
    if (step % updates == 0) generated = explore(model, n);
    state_->left = updates - step % updates - 1;
    StepLoss found = backward_on_batch(model, ppo_ ? &state_->value_head : nullptr, state_->batch,
                                       n, step % updates, training());
    found.metrics.insert(found.metrics.begin(), generated.begin(), generated.end());
    return found;
  }
  std::string first_bad_tensor(model::Transformer& model, int64_t step) const override {
    // The batches are not those of examples. NOLINTNEXTLINE(bugprone-parent-virtual-call)
    return TrainingTask::first_bad_tensor(model, step);
  }

  infer::Predictions predict(const model::Transformer& model) const override {
    const std::vector<const PromptText*> prompts = held_out_prompts();
    const EpisodePlayer::Start start = {
        .prompts = prompts, .seeds = std::vector<uint64_t>(prompts.size()), .evaluation = true};
    const std::vector<PlayedEpisode> episodes = played(model, start, greedy());
    infer::Predictions found;
    found.generated_rewards = scores_of(prompts, episodes).total;
    double tokens = 0;
    for (const PlayedEpisode& episode : episodes) tokens += static_cast<double>(length_of(episode));
    found.answer_tokens = tokens / static_cast<double>(episodes.size());
    return found;
  }

  bool writes_samples(const model::Transformer&) const override {
    return options_.sample_tokens > 0;
  }
  std::string sample(const model::Transformer& model, int64_t) const override {
    if (options_.sample_tokens <= 0) return {};
    const PromptText& first =
        texts_.held_out.empty() ? texts_.training.front() : texts_.held_out.front();
    const std::vector<infer::Generation> answers =
        generated(model, {{&first.ids, 0, std::min(most_tokens(), options_.sample_tokens)}},
                  greedy(), nullptr);
    const std::string prompt = setting().tokenizers.source.decode(first.ids);
    return prompt + (translates_ ? "\n" : "") + answers[0].text;
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
            .recompute = options_.recompute,
            .ranks = options_.ranks,
            .sharing = sharing_};
  }

  void check_tokens_of_template(const text::Tokenizer& tokenizer) const {
    const text::BuiltinTemplate* const builtin =
        text::find_builtin_template(options_.chat_template);
    if (builtin == nullptr) return;
    for (const std::string& token : builtin->tokens)
      check_field(tokenizer.id_of(token).has_value(), "chat_template",
                  "the tokenizer lacks the special token {}; expected the template on which the "
                  "model was trained",
                  token);
  }

  std::vector<int32_t> ends_of(const model::Origin& origin,
                               const text::Tokenizer& tokenizer) const {
    std::vector<int32_t> ends = end_ids_of(origin, tokenizer);
    if (const auto end = end_id(tokenizer); translates_ && ends.empty() && end)
      ends.push_back(*end);
    return ends;
  }

  // A token that the checkpoint forces to be the first one precedes the answer. None is forced to
  // be the last one: an answer ends where the policy ends it.
  void set_rules(const model::Origin& origin, const text::Tokenizer& tokenizer) {
    rules_ = infer::rules_of(origin, ends_of(origin, tokenizer));
    rules_.forced_last = {};
    if (rules_.forced_first && fovea::infer::ends(rules_, {}, *rules_.forced_first))
      rules_.forced_first = {};
    if (translates_) rules_.start = decoder_start(tokenizer, origin);
  }
  int64_t forced() const { return rules_.forced_first ? 1 : 0; }
  int64_t most_tokens() const { return o_.answer_tokens + forced(); }
  int64_t length_of(const infer::Generation& answer) const {
    return std::ssize(answer.ids) - forced();
  }
  // The tokens that the model has written, without end tokens.
  int64_t length_of(const PlayedEpisode& episode) const {
    int64_t tokens = std::ssize(episode.ids) - forced() - episode.answers;
    if (episode.answer.end_id < 0) ++tokens;
    for (size_t i = 0; i < episode.replies.size(); i += 2)
      tokens -= episode.replies[i + 1] - episode.replies[i];
    return tokens;
  }

  AnswerSettings sampling() const {
    return {.generations = o_.generations,
            .temperature = o_.sampling_temperature,
            .compute = compute()};
  }
  AnswerSettings greedy() const { return {.temperature = 0, .compute = compute()}; }

  // Returns the prompts of an evaluation.
  std::vector<const PromptText*> held_out_prompts() const {
    std::vector<const PromptText*> prompts;
    const int64_t all = std::ssize(texts_.held_out),
                  most = o_.evaluation_prompts > 0 ? std::min(o_.evaluation_prompts, all) : all;
    for (int64_t i = 0; i < most; ++i)
      prompts.push_back(&texts_.held_out[static_cast<size_t>(i * all / most)]);
    return prompts;
  }

  void add_value_head(const model::Spec& spec) const {
    state_->value_head = model::Linear(spec.width, 1, true);
    state_->value_head.weight.value = zeros({1, spec.width}).to(default_device());
    state_->value_head.bias.value = zeros({1}).to(default_device());
  }

  std::vector<infer::Generation> generated(const model::Transformer& model,
                                           const std::vector<AnswerPrompt>& prompts,
                                           const AnswerSettings& settings,
                                           Communicator* ranks) const {
    return share_answers(
        ranks, std::ssize(prompts), settings.generations, [&](int64_t begin, int64_t end) {
          return generate_answers(model, setting().tokenizers.target, rules_,
                                  {prompts.begin() + begin, prompts.begin() + end}, settings);
        });
  }

  // Returns `settings.generations` episodes from each prompt.
  std::vector<PlayedEpisode> played(const model::Transformer& model,
                                    const EpisodePlayer::Start& start,
                                    AnswerSettings settings) const {
    std::vector<AnswerPrompt> prompts;
    for (size_t p = 0; p < start.prompts.size(); ++p)
      prompts.push_back({&start.prompts[p]->ids, start.seeds[p], most_tokens()});
    std::vector<PlayedEpisode> episodes;
    for (infer::Generation& first : generated(model, prompts, settings, options_.ranks)) {
      PlayedEpisode& episode = episodes.emplace_back();
      episode.ids = first.ids;
      if (first.end_id >= 0) episode.ids.push_back(first.end_id);
      episode.answer = std::move(first);
    }
    settings.generations = 1;
    if (player_)
      player_->play(start, episodes, [&](const std::vector<AnswerPrompt>& next) {
        return generated(model, next, settings, options_.ranks);
      });
    return episodes;
  }

  // Rank 0 judges: its machine has the programs, and their answers may differ.
  Rewards::Scores scores_of(const std::vector<const PromptText*>& prompts,
                            const std::vector<PlayedEpisode>& episodes) const {
    Rewards::Scores scores;
    if (leads(options_.ranks)) scores = (*rewards_)(judged(prompts, episodes));
    if (options_.ranks != nullptr) {
      const nlohmann::json told =
          of_leader(*options_.ranks, {{"total", scores.total}, {"by_name", scores.by_name}});
      scores = {told["total"].get<std::vector<double>>(),
                told["by_name"].get<std::vector<std::vector<double>>>()};
    }
    for (size_t i = 0; i < episodes.size(); ++i) scores.total[i] += episodes[i].reward;
    return scores;
  }

  // The last answers.
  std::vector<GeneratedAnswer> judged(const std::vector<const PromptText*>& prompts,
                                      const std::vector<PlayedEpisode>& episodes) const {
    const size_t each = episodes.size() / prompts.size();
    std::vector<GeneratedAnswer> all;
    for (size_t i = 0; i < episodes.size(); ++i) {
      const infer::Generation& answer = episodes[i].answer;
      all.push_back({&prompts[i / each]->prompt, answer.text, length_of(answer)});
    }
    return all;
  }

  // Writes the n-th batch of answers and computes all that its steps compare with. Returns numbers
  // for the log.
  infer::MetricValues explore(const model::Transformer& model, int64_t n) const {
    EpisodePlayer::Start start = {.number = n * o_.prompts * o_.generations};
    for (const size_t i : dynamic_cast<const PromptExamples&>(loaded()).prompts(n)) {
      const int64_t used = n * o_.prompts + std::ssize(start.prompts);
      start.seeds.push_back(seed_of_answers(options_.seed, static_cast<uint64_t>(used)));
      start.prompts.push_back(&texts_.training[i]);
    }
    const std::vector<PlayedEpisode> episodes = played(model, start, sampling());
    const Rewards::Scores scores = scores_of(start.prompts, episodes);
    RolloutBatch& batch = state_->batch;
    batch = collected(start.prompts, episodes);
    read(model, batch);
    infer::MetricValues metrics = metrics_of(scores, episodes);
    if (ppo_) {
      set_advantages_by_token(scores.total, batch);
    } else {
      set_group_advantages(scores.total, batch);
    }
    return metrics;
  }

  RolloutBatch collected(const std::vector<const PromptText*>& prompts,
                         const std::vector<PlayedEpisode>& episodes) const {
    const size_t each = episodes.size() / prompts.size();
    RolloutBatch batch;
    for (size_t i = 0; i < episodes.size(); ++i) {
      const PlayedEpisode& episode = episodes[i];
      const std::vector<int32_t>& prompt = prompts[i / each]->ids;
      std::vector<int32_t>& ids = batch.ids.emplace_back(prompt);
      if (translates_) {
        batch.sources.push_back(prompt);
        ids = {*rules_.start};
      }
      if (player_) {
        std::vector<int32_t>& replies = batch.replies.emplace_back(episode.replies);
        for (int32_t& end : replies) end += static_cast<int32_t>(ids.size());
      }
      batch.prompts.push_back(static_cast<int32_t>(std::ssize(ids) + forced()));
      append(ids, episode.ids);
      batch.trained.push_back(episode.answer.end_id >= 0 || !o_.mask_truncated ? 1 : 0);
    }
    return batch;
  }

  // Reads the answers with the policy, if its numbers are needed before the first step, and with
  // the reference.
  void read(const model::Transformer& model, RolloutBatch& batch) const {
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
  const model::Transformer& reference(const model::Transformer& model) const {
    if (!state_->reference && options_.lora.rank > 0) {
      state_->reference = without_adapters(model);  // shares the frozen weights
    } else if (!state_->reference) {
      state_->reference = model::open_model_files(options_.from, model::Weights::mapped).model;
    }
    return *state_->reference;
  }

  void set_group_advantages(const std::vector<double>& rewards, RolloutBatch& batch) const {
    const std::vector<double> advantages = group_advantages(rewards, o_.generations, o_.advantage);
    for (size_t i = 0; i < batch.count(); ++i)
      batch.advantages.insert(batch.advantages.end(), static_cast<size_t>(batch.length(i)),
                              static_cast<float>(advantages[i]));
  }

  // The reward of a token is -kl_weight (log policy - log reference), and the last one of an answer
  // also has the answer's reward.
  void set_advantages_by_token(const std::vector<double>& rewards, RolloutBatch& batch) const {
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

  infer::MetricValues metrics_of(const Rewards::Scores& scores,
                                 const std::vector<PlayedEpisode>& episodes) const {
    const auto count = static_cast<double>(episodes.size());
    const double mean = infer::mean_of(scores.total);
    double squares = 0, tokens = 0, ended = 0, answers = 0, of_environment = 0;
    for (const double reward : scores.total) squares += (reward - mean) * (reward - mean);
    for (const PlayedEpisode& episode : episodes) {
      tokens += static_cast<double>(length_of(episode));
      ended += episode.answer.end_id >= 0;
      answers += static_cast<double>(episode.answers);
      of_environment += episode.reward;
    }
    infer::MetricValues metrics = {{"reward", mean},
                                   {"reward_deviation", std::sqrt(squares / count)}};
    for (size_t i = 0; i < scores.by_name.size(); ++i)
      metrics.emplace_back("reward_" + rewards_->names()[i], infer::mean_of(scores.by_name[i]));
    if (player_) {
      metrics.emplace_back("reward_environment", of_environment / count);
      metrics.emplace_back("turns", answers / count);
    }
    metrics.emplace_back("answer_tokens", tokens / count);
    metrics.emplace_back("ended", ended / count);
    if (ppo_) metrics.emplace_back("kl_weight", state_->kl_weight);
    return metrics;
  }

  const ReinforcementOptions o_;
  bool ppo_;
  Prompts data_, validation_;
  std::optional<text::ModelChat> chat_;
  PromptTexts texts_;
  bool translates_ = false;  // the model is an encoder-decoder
  std::unique_ptr<Rewards> rewards_;
  std::optional<EpisodePlayer> player_;  // if there is an environment
  infer::GenerationRules rules_;
  int32_t padding_ = 0;
  uint64_t data_hash_ = 0;
  uint64_t copy_bytes_ = 0;        // of a second copy of the weights
  uint64_t generation_bytes_ = 0;  // of keys and values, and a step of generation
  std::unique_ptr<ReinforcementState> state_;
};

}  // namespace

std::unique_ptr<ExamplesTask> make_reinforcement_task(const TrainOptions& options,
                                                      ExamplesTask::Purpose purpose,
                                                      Objective objective) {
  return std::make_unique<ReinforcementTask>(options, purpose, objective);
}

}  // namespace fovea::train
