#include <algorithm>
#include <bit>
#include <set>

#include "base/fields.h"
#include "base/hash.h"
#include "data/corpus.h"
#include "data/held_out.h"
#include "data/preferences.h"
#include "fovea/model/model_path.h"
#include "kernels/isa.h"
#include "loop/adapters.h"
#include "loop/reference.h"
#include "loop/shared_evaluation.h"
#include "loop/special_tokens.h"
#include "loop/step_sharing.h"
#include "losses/preference_losses.h"
#include "losses/sequence_log_probabilities.h"
#include "open/directory.h"
#include "tasks/conversations_task.h"
#include "tasks/preference_examples.h"
#include "tasks/preference_text.h"
#include "tensor/host_values.h"
#include "tensor/tape.h"

namespace fovea::train {
namespace {

using PairRewards = infer::Predictions::Rewards;

constexpr int64_t kUsualAnswer = 64;  // estimated tokens of an answer, for the plan

// Learns which answers are preferred (docs/align.md).
class PreferencesTask : public ConversationsTask {
 public:
  PreferencesTask(const TrainOptions& options, Purpose purpose, Objective objective)
      : ConversationsTask(options, purpose), objective_(objective) {
    check_field(purpose == Purpose::train || objective == Objective::reward, "text",
                "{} holds preferences, which only a reward model judges; expected a model that was "
                "trained with the objective reward",
                options.data.front());
    check_field(purpose == Purpose::measure || !options.from.empty(), "from",
                "not given, but {} holds preferences; expected the model to train",
                options.data.front());
    data_ = read_preferences(options.data);
    check_forms(data_);
    if (options.validation_chats.empty()) return;
    validation_ = read_preferences(options.validation_chats);
    check_unweighted(validation_.files, "validation_chats");
    check_forms(validation_);
    data_.hash ^= hash_bytes(fmt::format("validation {}", validation_.hash));
  }

  void watch(const std::function<bool(double)>& reading) override { watch_ = reading; }

  void shape(model::Spec& spec, const text::Tokenizer& tokenizer, const model::Origin& origin,
             const Say& say) override {
    if (objective_ == Objective::reward) {
      shape_head(spec, tokenizer, origin, say);
    } else if (translates(spec)) {
      // Both tokenizers are needed, so the texts are made in examples().
      check_field(options_.chat_template.empty(), "chat_template",
                  "does not suit an encoder-decoder; expected none");
      return;
    } else {
      check_shares_rows(spec, objective_);
    }
    chat_ = open_chat(tokenizer);
    render(spec, {tokenizer, tokenizer}, 0, say);
  }

  std::vector<std::string> labels() const override { return names_; }

  PassSize pass_size(const model::Spec& spec) const override {
    const int64_t texts = options_.batch * (objective_ == Objective::kto ? 1 : 2);
    return {texts, usual_ > 0 ? usual_ : std::min(spec.context, kUsualAnswer)};
  }

  std::unique_ptr<Examples> examples(const model::Spec& spec,
                                     const text::TranslationTokenizers& tokenizers,
                                     const model::Origin& origin, bool, const Say& say) override {
    if (row_ == 0) render(spec, tokenizers, decoder_start(tokenizers.target, origin), say);
    if (spec.token_types <= 1) texts_.types = {};
    auto made = std::make_unique<PreferenceExamples>(
        std::move(texts_), held_out_,
        PreferenceBatching{
            .one_per_row = objective_ == Objective::reward,
            .judged = objective_ == Objective::kto,
            .decodes = spec.decoder.has_value(),
            .length = row_,
            .batch = options_.batch,
            .seed = options_.seed,
            .padding = static_cast<int32_t>(
                spec.padding >= 0 ? spec.padding : end_id(tokenizers.source).value_or(0))});
    if (has_reference() && purpose_ == Purpose::train)
      say(
          fmt::format("the log-probabilities of the initial model are computed before the first "
                      "step, for up to {} texts",
                      2 * (made->learnt.sequences + made->held_out.sequences)));
    made->hash = data_.hash ^ hash_bytes(source());
    examples_ = made.get();
    return made;
  }

  infer::EvaluationTask evaluation() const override {
    return infer::evaluation_task(name_of(objective_));
  }

  // A reward is no label, which a table of labels could count.
  void complete(infer::Predictions&) const override {}

  void begin(const model::Transformer& model, int64_t first) override {
    if (!has_reference()) return;
    const PreferenceOptions& o = options_.preferences;
    reference_.emplace(o.cache.empty() ? options_.out + "/reference" : o.cache, identity());
    if (sharing_ == nullptr || sharing_->rank() == 0) reference_->open();
    std::vector<int64_t> records = unknown_records(first);
    if (sharing_ != nullptr) records = sharing_->of_first(records);
    std::optional<model::ModelFiles> opened;
    if (first > 0 && !records.empty()) opened = initial_model(model);
    // Without its adapters, a model is the initial one, also if the run began with an adapter.
    const bool adapted = !opened && options_.lora.rank > 0;
    compute_reference(opened ? opened->model : adapted ? without_adapters(model) : model, records);
  }

  StepLoss backward(const model::Transformer& model, int64_t step) const override {
    infer::Predictions found;
    const auto divisor = static_cast<double>(options_.batch * pass_options().passes.at(step));
    StepLoss result = backward_by_passes(
        *examples_, step, pass_options(), [&](const Batch& batch, const model::Pass& pass, double) {
          const Scores scores = score(model, batch, pass, found.rewards);
          Tensor loss = times(sum(scores.losses), 1 / divisor);
          if (scores.side_loss)
            loss = add(
                loss, times(scores.side_loss, static_cast<double>(scores.losses.size()) / divisor));
          return loss;
        });
    if (sharing_ != nullptr)
      for (std::vector<double>* rewards : {&found.rewards.chosen, &found.rewards.rejected})
        *rewards = sharing_->gather(*rewards);
    found.rewards.paired = objective_ != Objective::kto;
    result.metrics = infer::values_of(evaluation().metrics, found);
    return result;
  }

  infer::Predictions predict_batches(const model::Transformer& model, DType dtype, int64_t count,
                                     const std::function<Batch(int64_t n)>& batch) const override {
    const NoGradient off;
    model::Pass pass;
    pass.compute = dtype;
    infer::Predictions found = train::predict_batches(options_.ranks, count, [&](int64_t n) {
      infer::Predictions one;
      const Scores scores = score(model, batch(n), pass, one.rewards);
      one.loss = number_of(sum(scores.losses));
      one.labels = scores.losses.size();
      return one;
    });
    found.rewards.paired = objective_ != Objective::kto;
    return found;
  }

  void write_model(const std::string& folder, model::Transformer& model) const override {
    if (objective_ == Objective::reward || translates(model.spec))
      // Without the end tokens of chats. NOLINTNEXTLINE(bugprone-parent-virtual-call)
      return ExamplesTask::write_model(folder, model);
    ConversationsTask::write_model(folder, model);
  }

 private:
  struct Scores {
    Tensor losses;     // f64 [n], of each pair or judged answer
    Tensor side_loss;  // f64 [1], or unset
  };

  static bool translates(const model::Spec& spec) {
    return spec.encoder && spec.decoder && spec.input.kind == model::InputKind::tokens &&
           spec.head.kind == model::HeadKind::language_model;
  }
  bool has_reference() const {
    return objective_ == Objective::kto ||
           (objective_ == Objective::dpo && !options_.preferences.reference_free);
  }
  double beta() const {
    const double given = options_.preferences.beta;
    return given > 0 ? given : objective_ == Objective::simpo ? 2 : 0.1;
  }

  void check_forms(const Preferences& all) const {
    if (objective_ == Objective::kto) return;
    for (const Preference& record : all.records)
      if (!record.rejected)
        fail(ErrorKind::BadFile,
             "{}: chosen is missing; expected \"chosen\" and \"rejected\" for the objective {}, or "
             "the objective kto",
             record.chosen.location, name_of(objective_));
  }

  // Gives the model a head with one output, unless it has one.
  void shape_head(model::Spec& spec, const text::Tokenizer& tokenizer, const model::Origin& origin,
                  const Say& say) {
    check_field(!(spec.encoder && spec.decoder) && spec.input.kind == model::InputKind::tokens,
                objective_field(options_),
                "reward does not suit the model; expected an encoder or a decoder for text");
    names_ = {"reward"};
    if (spec.head.kind == model::HeadKind::sequence && spec.head.labels == 1) {
      if (origin.labels.size() == 1) names_ = origin.labels;
      return;
    }
    check_field(purpose_ == Purpose::train, "text",
                "{} holds preferences, but the model has no head with one output; expected a "
                "reward model",
                options_.data.front());
    spec.head = model::head_of(*origin.family, spec, model::HeadKind::sequence, 1);
    set_classifier_padding(spec, tokenizer, origin);
    say("a new head with one output");
  }

  // Converts the records to tokens. Without validation data, evenly spaced ones are held out.
  // `start`: the start token of the decoder of an encoder-decoder.
  void render(const model::Spec& spec, const text::TranslationTokenizers& tokenizers, int32_t start,
              const Say& say) {
    const int64_t longest = longest_row(spec);
    const text::Tokenizer& tokenizer = tokenizers.target;
    const bool both = objective_ != Objective::reward && translates(spec);
    PreferenceTextMaker maker(
        chat_, tokenizer,
        {.train_on = options_.train_on,
         .rewards = objective_ == Objective::reward,
         .longest = longest,
         .too_long = options_.too_long,
         .pairs = spec.decoder ? std::nullopt
                               : std::optional(infer::TextFormat::of(tokenizer, spec, longest)),
         .translation = both ? &tokenizers : nullptr,
         .start = start});
    std::vector<const Preference*> training, held;
    const bool separate = !validation_.records.empty(), measured = purpose_ == Purpose::measure;
    SpecialNames names(tokenizer);
    for (size_t i = 0; i < data_.records.size(); ++i) {
      for (const auto& message : data_.records[i].chosen.messages) names.add(message.json);
      const bool out =
          measured || (!separate && is_held_out(static_cast<int64_t>(i), options_.validation));
      (out ? held : training).push_back(&data_.records[i]);
    }
    for (const Preference& record : validation_.records) held.push_back(&record);
    const std::vector<size_t> files = add_records(training, maker, tokenizer);
    texts_.groups = groups_of(data_.files, files);
    const int64_t trained = texts_.records();
    add_records(held, maker, tokenizer);
    held_out_ = texts_.records() - trained;
    if (!measured) say_first(say);
    maker.report(say);
    say_names(names, say);
    if (measured ? held_out_ == 0 : trained == 0)
      fail(ErrorKind::BadFile, "{}: contains no preference that can be used; expected answers",
           options_.data.front());
    if (!both && !measured && objective_ != Objective::reward &&
        !(held.empty() ? training : held).empty())
      prompt_ = maker.prompt((held.empty() ? training : held).front()->chosen);
    int64_t most = 0, all = 0;
    for (int64_t i = 0; i < texts_.texts.ids.count(); ++i) {
      most = std::max(most, texts_.texts.ids.length(i));
      all += texts_.texts.ids.length(i);
    }
    usual_ = all / std::max<int64_t>(1, texts_.texts.ids.count()) + 1;
    row_ = objective_ == Objective::reward ? most : std::min(longest, PackedRows::next_start(most));
  }

  void say_first(const Say& say) const {
    const Preference& first = data_.records.front();
    const std::string other =
        first.rejected ? "rejected: " + summary_of(*first.rejected)
                       : fmt::format("which is {}desirable", first.desirable ? "" : "not ");
    say(fmt::format("the first record ({}) is {}, {}", first.chosen.location,
                    summary_of(first.chosen), other));
  }

  // Returns the index of the file of each record that is added.
  std::vector<size_t> add_records(const std::vector<const Preference*>& records,
                                  PreferenceTextMaker& maker, const text::Tokenizer& tokenizer) {
    std::vector<size_t> files;
    const auto add = [&](const std::optional<PreferenceText>& made, size_t file) {
      if (!made) return;
      add_made(*made, tokenizer);
      files.push_back(file);
    };
    if (objective_ != Objective::kto) {
      for (const Preference* record : records) add(maker.pair(*record), record->chosen.file);
      return files;
    }
    struct Judged {
      const Conversation* answer;
      bool desirable;
      size_t file;
    };
    std::vector<Judged> answers;
    for (const Preference* record : records) {
      const size_t file = record->chosen.file;
      answers.push_back({&record->chosen, record->rejected.has_value() || record->desirable, file});
      if (record->rejected) answers.push_back({&*record->rejected, false, file});
    }
    // The answer of another record follows the prompt in the estimate of the divergence.
    for (size_t i = 0; i < answers.size(); ++i) {
      const auto& other = answers[(i + answers.size() - 1) % answers.size()];
      add(maker.judged(*answers[i].answer, answers[i].desirable, *other.answer), answers[i].file);
    }
    return files;
  }

  void add_made(const PreferenceText& made, const text::Tokenizer& tokenizer) {
    if (example_.empty()) {
      add_example(made.source, made.first, tokenizer, 0);
      if (objective_ != Objective::kto) add_example(made.source, made.second, tokenizer, 1);
    }
    add_text(made.first, made.first_types, tokenizer);
    add_text(made.second, made.second_types, tokenizer);
    texts_.values.push_back(made.value);
    if (made.source.empty()) return;
    for (int text = 0; text < 2; ++text) texts_.sources.add(made.source);
  }

  void add_example(const std::vector<int32_t>& source, const TrainedText& text,
                   const text::Tokenizer& tokenizer, int64_t number) {
    const TrainedText prompt{source, std::vector<bool>(source.size(), false)};
    for (const TrainedText* each : {&prompt, &text})
      for (ExamplePart& part : parts_of(*each, tokenizer, number))
        example_.push_back(std::move(part));
  }

  void add_text(const TrainedText& text, const std::vector<int32_t>& types,
                const text::Tokenizer& tokenizer) {
    if (!text.trained.empty()) find_ends(text, tokenizer);
    texts_.texts.ids.add(text.ids);
    texts_.texts.labels.add(labels_of_text(text));
    texts_.types.add(types);
  }

  // Computes the losses and adds the rewards. The tensors of a batch of pairs alternate between
  // chosen and rejected answers.
  Scores score(const model::Transformer& model, const Batch& batch, const model::Pass& pass,
               PairRewards& rewards) const {
    if (objective_ == Objective::reward) return score_rewards(model, batch, pass, rewards);
    const SequenceLogProbabilities found = sequence_log_probabilities(model, batch, pass);
    const PreferenceOptions& o = options_.preferences;
    const bool means = objective_ == Objective::orpo || objective_ == Objective::simpo ||
                       (objective_ == Objective::dpo && o.loss == PreferenceLoss::ipo);
    Tensor x = found.sums;
    if (has_reference()) x = subtract(x, reference_sums(batch, x));
    if (means) x = multiply(x, inverse(label_counts(batch)));
    const double factor = objective_ == Objective::orpo ? o.odds : beta();
    if (objective_ == Objective::kto) {
      const Tensor signs = examples_->values_of(batch);
      add_judged(times(x.detach(), factor), signs, rewards);
      const KtoWeights weights{beta(), o.desirable, o.undesirable};
      return {kto_losses(x, signs, divergence(model, batch, pass), weights), found.side_loss};
    }
    const auto [chosen, rejected] = alternating(x);
    add_pairs(times(chosen.detach(), factor), times(rejected.detach(), factor), rewards);
    Tensor losses;
    if (objective_ == Objective::orpo) losses = orpo_losses(chosen, rejected, o.odds);
    if (objective_ == Objective::simpo) losses = simpo_losses(chosen, rejected, beta(), o.gamma);
    if (objective_ == Objective::dpo)
      losses = dpo_losses(subtract(chosen, rejected), o.loss, beta(), options_.label_smoothing);
    if (o.chosen > 0) {
      const Tensor means_of_tokens = multiply(found.sums, inverse(label_counts(batch)));
      losses = subtract(losses, times(alternating(means_of_tokens).first, o.chosen));
    }
    return {losses, found.side_loss};
  }

  Scores score_rewards(const model::Transformer& model, const Batch& batch,
                       const model::Pass& given, PairRewards& rewards) const {
    const HeadInputs inputs = head_inputs(model, batch, given);
    const UnitScope units(inputs.units);
    const Tensor outputs = model.logits(inputs.hidden, inputs.valid);
    const std::vector<int64_t> ones(std::get<WholeTexts>(batch.meaning).texts.size(), 1);
    const auto [chosen, rejected] = alternating(segment_sums(outputs, ones));
    add_pairs(chosen, rejected, rewards);
    return {reward_losses(chosen, rejected, examples_->values_of(batch)), {}};
  }

  // Estimates KL(model || reference) from answers to other prompts, without a gradient; at least 0.
  double divergence(const model::Transformer& model, const Batch& judged,
                    const model::Pass& given) const {
    const NoGradient off;
    model::Pass pass;
    pass.compute = given.compute;
    const Batch batch = examples_->mismatched(judged);
    const Tensor sums = sequence_log_probabilities(model, batch, pass).sums;
    const Tensor ratios = subtract(sums, reference_sums(batch, sums));
    return std::max(0.0, number_of(sum(ratios)) / static_cast<double>(ratios.size()));
  }

  // Returns the sums of the initial model. When a plan measures the time of a step, `own` takes
  // their place.
  Tensor reference_sums(const Batch& batch, const Tensor& own) const {
    if (!reference_) return own.detach();
    const auto& texts = std::get<WholeTexts>(batch.meaning).texts;
    return tensor_from<double>({std::ssize(texts)}, [&](int64_t n) {
      const int64_t text = texts[static_cast<size_t>(n)].number;
      const auto found = reference_->find(examples_->key(text));
      check(found.has_value(), "reference: text {} is unknown; expected all texts of the run",
            text);
      return *found;
    });
  }

  static Tensor inverse(const Tensor& counts) {
    const HostValues<double> count(counts);
    return tensor_from<double>(counts.shape(), [&](int64_t i) { return 1 / count[i]; });
  }

  static void add_numbers(const Tensor& x, std::vector<double>& all) {
    const HostValues<double> numbers(x);
    all.insert(all.end(), numbers.begin(), numbers.end());
  }
  static void add_pairs(const Tensor& chosen, const Tensor& rejected, PairRewards& rewards) {
    add_numbers(chosen, rewards.chosen);
    add_numbers(rejected, rewards.rejected);
  }
  static void add_judged(const Tensor& values, const Tensor& signs, PairRewards& rewards) {
    const HostValues<double> value(values), sign(signs);
    for (int64_t i = 0; i < value.size(); ++i)
      (sign[i] > 0 ? rewards.chosen : rewards.rejected).push_back(value[i]);
  }

  // Returns a hash of what the log-probabilities of the initial model depend on, besides the texts.
  uint64_t identity() const {
    return hash_bytes(fmt::format("{:016x} {} {} {}", model::model_fingerprint(options_.from),
                                  numeric_class(compute()), setting().spec.vocabulary,
                                  static_cast<int>(options_.lora.base)));
  }

  // Returns the records that the run reads from step `first` on, and whose texts are not known.
  std::vector<int64_t> unknown_records(int64_t first) const {
    std::set<int64_t> all;
    for (const int64_t record : examples_->records_held_out()) all.insert(record);
    const size_t most = all.size() + static_cast<size_t>(examples_->learnt.sequences);
    const Growth passes = pass_options().passes;
    for (int64_t pass = passes.sum(first); pass < passes.sum(options_.steps) && all.size() < most;
         ++pass)
      for (const int64_t record : examples_->records_of(pass)) all.insert(record);
    std::vector<int64_t> unknown;
    for (const int64_t record : all)
      if (!reference_->find(examples_->key(2 * record)) ||
          !reference_->find(examples_->key(2 * record + 1)))
        unknown.push_back(record);
    return unknown;
  }

  // Opens the initial model again, for a resumed run whose results of it are lost.
  model::ModelFiles initial_model(const model::Transformer& model) const {
    const auto [weights, packing] = base_weights(options_.lora);
    model::ModelFiles files = model::open_model_files(
        base_of(options_.from), weights == model::Weights::owned ? model::Weights::mapped : weights,
        packing);
    check_field(files.model.spec.vocabulary == model.spec.vocabulary, "reference_cache",
                "lacks texts, and the tokens of the chat template were added to the model; "
                "expected the directory of the earlier part of the run");
    return files;
  }

  void compute_reference(const model::Transformer& model,
                         const std::vector<int64_t>& records) const {
    const auto keep = [&](const Batch& batch) {
      std::vector<uint64_t> keys;
      for (const WholeTexts::Text& text : std::get<WholeTexts>(batch.meaning).texts)
        keys.push_back(examples_->key(text.number));
      reference_->add(model, compute(), batch, keys);
    };
    const auto count = std::ssize(records);
    for (int64_t begin = 0; begin < count; begin += options_.batch) {
      if (sharing_ != nullptr && begin / options_.batch % sharing_->size() != sharing_->rank())
        continue;
      const int64_t end = std::min(begin + options_.batch, count);
      const Batch batch = examples_->of({records.begin() + begin, records.begin() + end});
      keep(batch);
      if (objective_ == Objective::kto) keep(examples_->mismatched(batch));
      if (watch_ && !watch_(static_cast<double>(end) / static_cast<double>(count)))
        throw ReadingStopped();
    }
    if (sharing_ != nullptr) share_reference(records);
  }

  // Gives every process the results that the others have computed.
  void share_reference(const std::vector<int64_t>& records) const {
    std::vector<double> own;  // keys, each followed by its result
    for (const int64_t record : records) {
      for (const uint64_t key : {examples_->key(2 * record), examples_->key(2 * record + 1)}) {
        const std::optional<double> found = reference_->find(key);
        if (!found) continue;
        own.push_back(std::bit_cast<double>(key));
        own.push_back(*found);
      }
    }
    const std::vector<double> all = sharing_->gather(own);
    for (size_t i = 0; i < all.size(); i += 2) {
      const auto key = std::bit_cast<uint64_t>(all[i]);
      if (!reference_->find(key)) reference_->keep(key, all[i + 1]);
    }
  }

  Objective objective_;
  Preferences data_, validation_;
  PreferenceTexts texts_;
  int64_t held_out_ = 0;  // records
  int64_t row_ = 0;       // most tokens of a text
  int64_t usual_ = 0;     // mean tokens of a text
  std::vector<std::string> names_;
  std::function<bool(double)> watch_;
  const PreferenceExamples* examples_ = nullptr;
  mutable std::optional<Reference> reference_;
};

}  // namespace

std::unique_ptr<ExamplesTask> make_preferences_task(const TrainOptions& options,
                                                    ExamplesTask::Purpose purpose,
                                                    Objective objective) {
  return std::make_unique<PreferencesTask>(options, purpose, objective);
}

}  // namespace fovea::train
