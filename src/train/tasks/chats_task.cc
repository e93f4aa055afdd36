#include <algorithm>

#include "base/fields.h"
#include "base/hash.h"
#include "data/conversations.h"
#include "data/held_out.h"
#include "loop/special_tokens.h"
#include "tasks/conversations_task.h"
#include "tasks/packed_examples.h"
#include "tasks/student_answers.h"

namespace fovea::train {
namespace {

// Predicts the answers of conversations.
class ChatsTask : public ConversationsTask {
 public:
  ChatsTask(const TrainOptions& options, Purpose purpose) : ConversationsTask(options, purpose) {
    check_field(purpose == Purpose::measure || !template_folder().empty(), "from",
                "not given, but {} holds conversations; expected the model to fine-tune",
                options.data.front());
    traits_.losses_fall = traits_.measures_steps = !writes();
    data_ = read_conversations(options.data);
    if (!options.validation_chats.empty()) {
      validation_ = read_conversations(options.validation_chats);
      check_unweighted(validation_.files, "validation_chats");
      // Without validation data, the hash is that of the data alone.
      data_.hash ^= hash_bytes(fmt::format("validation {}", validation_.hash));
    }
  }

  void shape(model::Spec& spec, const text::Tokenizer& tokenizer, const model::Origin&,
             const Say& say) override {
    check_shares_rows(spec, Objective::chats);
    chat_ = open_chat(tokenizer);
    render(spec, tokenizer, say);
  }

  PassSize pass_size(const model::Spec&) const override { return {options_.batch, row_}; }
  // With the answers of the student, whose lengths are known when they are written.
  PassSize loaded_size(const model::Spec& spec) const override {
    PassSize size = ConversationsTask::loaded_size(spec);
    if (!student_) return size;
    size.length = std::max(size.length, student_->longest());
    size.outputs = std::max(size.outputs, options_.batch * options_.reinforcement.answer_tokens);
    size.varies = true;
    return size;
  }
  PlannedWork planned_work() const override {
    if (!student_) return {};
    constexpr double kForward = 1.0 / 3;  // of the time of a pass: writing it
    return {.passes_per_step = 1 + kForward * options_.distillation.on_policy,
            .generation_bytes = generation_bytes_};
  }

  std::unique_ptr<Examples> examples(const model::Spec& spec,
                                     const text::TranslationTokenizers& tokenizers,
                                     const model::Origin& origin, bool, const Say&) override {
    const int32_t padding = static_cast<int32_t>(
        spec.padding >= 0 ? spec.padding : end_id(tokenizers.source).value_or(0));
    auto examples = std::make_unique<PackedExamples>(
        std::move(training_), std::move(held_out_), groups_,
        PackedOptions{
            .length = row_, .batch = options_.batch, .seed = options_.seed, .padding = padding});
    examples->hash = data_.hash ^ hash_bytes(source());
    if (writes()) add_student(spec, origin, padding);
    return examples;
  }

  StepLoss backward(const model::Transformer& model, int64_t step) const override {
    if (!student_) return ConversationsTask::backward(model, step);
    const PassOptions options = pass_options();
    const StudentAnswers::Written written = student_->write(
        model, setting().tokenizers.source, options.passes.sum(step), options.passes.at(step));
    StepLoss found =
        backward_by_passes(WithWritten(loaded(), written.batches), step, options,
                           [&](const Batch& batch, const model::Pass& pass, double divisor) {
                             return loss(model, batch, pass, divisor);
                           });
    found.metrics = written.metrics;
    return found;
  }
  std::string first_bad_tensor(model::Transformer& model, int64_t step) const override {
    // The batches of a student are not those of examples.
    // NOLINTNEXTLINE(bugprone-parent-virtual-call)
    return student_ ? TrainingTask::first_bad_tensor(model, step)
                    : ConversationsTask::first_bad_tensor(model, step);
  }

  infer::EvaluationTask evaluation() const override { return infer::evaluation_task("chats"); }

 private:
  // Whether the student writes answers.
  bool writes() const {
    return !options_.distillation.teacher.empty() && options_.distillation.on_policy > 0;
  }

  void add_student(const model::Spec& spec, const model::Origin& origin, int32_t padding) {
    if (prompts_.empty())
      fail(ErrorKind::BadFile,
           "{}: contains no prompt that leaves room for an answer; expected at least one",
           data_.files.front().path);
    infer::GenerationRules rules = infer::rules_of(origin, ends(origin));
    rules.forced_first = rules.forced_last = {};
    student_.emplace(std::move(prompts_), groups_of(data_.files, prompt_files_), std::move(rules),
                     StudentAnswers::Options{.share = options_.distillation.on_policy,
                                             .temperature = options_.distillation.temperature,
                                             .tokens = options_.reinforcement.answer_tokens,
                                             .batch = options_.batch,
                                             .context = spec.context,
                                             .padding = padding,
                                             .seed = options_.seed,
                                             .compute = compute(),
                                             .ranks = options_.ranks});
    generation_bytes_ = student_->bytes(model::Transformer(spec), options_.accumulate);
  }

  // Keeps the part of a training text before its last answer as a prompt.
  void add_prompt(const TrainedText& text, size_t file, int64_t context) {
    size_t begin = text.ids.size();
    while (begin > 0 && !text.trained[begin - 1]) --begin;
    while (begin > 0 && text.trained[begin - 1]) --begin;
    if (begin == 0 || static_cast<int64_t>(begin) >= context) return;
    prompts_.emplace_back(text.ids.begin(), text.ids.begin() + static_cast<int64_t>(begin));
    prompt_files_.push_back(file);
  }

  // The texts of a part, before they are packed.
  struct Rendered {
    std::vector<TrainedText> texts;
    std::vector<size_t> files;
  };

  // Converts the records to tokens. Without validation data, evenly spaced records are held out,
  // with all their texts.
  void render(const model::Spec& spec, const text::Tokenizer& tokenizer, const Say& say) {
    const ConversationText text(chat_, tokenizer, options_.train_on);
    Rendered training, held_out;
    SpecialNames names(tokenizer);
    bool prompted_held_out = false;
    const auto add = [&](const Conversation& record, bool held) {
      for (const auto& message : record.messages) names.add(message.json);
      bool kept = false;
      for (TrainedText& made : text.texts(record)) {
        find_ends(made, tokenizer);
        if (writes() && !held) add_prompt(made, record.file, spec.context);
        kept |= keep(std::move(made), record.file, longest_row(spec), held ? held_out : training);
      }
      if (!kept || !(prompt_.empty() || (held && !prompted_held_out))) return;
      prompt_ = text.prompt(record);
      prompted_held_out = held;
    };
    const bool separate = !validation_.records.empty(), measured = purpose_ == Purpose::measure;
    for (int64_t i = 0; i < std::ssize(data_.records); ++i) {
      const bool held = !separate && is_held_out(i, options_.validation);
      add(data_.records[static_cast<size_t>(i)], measured || held);
    }
    for (const Conversation& record : validation_.records) add(record, true);
    if (purpose_ == Purpose::train)
      say(fmt::format("the first record ({}) is {}", data_.records.front().location,
                      summary_of(data_.records.front())));
    report(longest_row(spec), say);
    say_names(names, say);
    if (purpose_ == Purpose::measure) training = held_out;
    if (training.texts.empty())
      fail(ErrorKind::BadFile, "{}: contains no text with a trained token; expected answers",
           data_.files.front().path);
    finish(training, held_out, longest_row(spec), tokenizer);
  }

  // Adds a text to a part, unless it is too long or nothing is trained. Returns whether it does.
  bool keep(TrainedText text, size_t file, int64_t longest, Rendered& part) {
    if (std::ssize(text.ids) > longest) {
      ++long_;
      if (options_.too_long == TooLong::skip) return false;
      text.ids.resize(static_cast<size_t>(longest));
      text.trained.resize(static_cast<size_t>(longest));
    }
    // The first token has none before it.
    if (text.ids.size() < 2 ||
        std::find(text.trained.begin() + 1, text.trained.end(), true) == text.trained.end()) {
      ++untrained_;
      return false;
    }
    part.texts.push_back(std::move(text));
    part.files.push_back(file);
    return true;
  }

  void report(int64_t longest, const Say& say) const {
    if (long_ > 0) {
      say(fmt::format("{} texts with more than {} tokens are {}", long_, longest,
                      options_.too_long == TooLong::cut ? "truncated" : "skipped"));
    }
    if (untrained_ > 0)
      say(fmt::format("{} texts without a trained token are skipped", untrained_));
    if (ends_.empty() && purpose_ == Purpose::train)
      say("no special token ends the trained answers, so the model does not learn to stop");
  }

  void finish(const Rendered& training, const Rendered& held_out, int64_t longest,
              const text::Tokenizer& tokenizer) {
    row_ = std::min(longest, useful_row(training, held_out));
    groups_ = groups_of(data_.files, training.files);
    example_ = parts_of(training.texts.front(), tokenizer);
    add(training.texts, training_);
    add(held_out.texts, held_out_);
  }

  // Returns the length of a row beyond which there is only padding: that of the longest text in
  // training, unless a length is given, and that of all texts together in an evaluation.
  int64_t useful_row(const Rendered& training, const Rendered& held_out) const {
    if (options_.length > 0 && purpose_ == Purpose::train) return options_.length;
    int64_t longest = 0, all = 0;
    for (const auto* part : {&training.texts, &held_out.texts}) {
      for (const TrainedText& text : *part) {
        const int64_t tokens = PackedRows::next_start(std::ssize(text.ids));
        longest = std::max(longest, tokens);
        all += tokens;
      }
    }
    return purpose_ == Purpose::train ? longest : all;
  }

  static void add(const std::vector<TrainedText>& texts, LabelledSequences& all) {
    for (const TrainedText& text : texts) {
      all.ids.add(text.ids);
      all.labels.add(labels_of_text(text));
    }
  }

  Conversations data_, validation_;
  LabelledSequences training_, held_out_;
  std::vector<PackedRows::Group> groups_;
  int64_t row_ = 0;  // tokens of a row
  int64_t long_ = 0, untrained_ = 0;
  // If the student writes answers: the prompts until it exists, and the file of each.
  std::vector<std::vector<int32_t>> prompts_;
  std::vector<size_t> prompt_files_;
  std::optional<StudentAnswers> student_;
  uint64_t generation_bytes_ = 0;
};

}  // namespace

std::unique_ptr<ExamplesTask> make_chats_task(const TrainOptions& options,
                                              ExamplesTask::Purpose purpose) {
  return std::make_unique<ChatsTask>(options, purpose);
}

}  // namespace fovea::train
