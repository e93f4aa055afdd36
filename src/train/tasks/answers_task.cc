#include <algorithm>
#include <cmath>

#include "base/fields.h"
#include "data/answers.h"
#include "data/task_tokenizer.h"
#include "embed/text_format.h"
#include "loop/examples_task.h"
#include "loop/special_tokens.h"
#include "tasks/label_examples.h"

namespace fovea::train {
namespace {

constexpr int64_t kUsualWindow = 256;  // estimated tokens per window, for the plan
// Tokens that neighbouring windows of a long context share, as in the script run_qa.py of
// transformers.
constexpr int64_t kSharedTokens = 128;

// A window of a context: the question it belongs to, and the bytes of each token in the context.
struct Window {
  size_t question = 0;
  int64_t first = 0;                 // the first token of the context in the window
  std::vector<text::Offsets> bytes;  // of the tokens from `first` on
};

// Finds the answer to a question in its context (Rajpurkar et al. 2016), by the first and the last
// token of it; the first token of a window means that the window does not have it. Contexts that
// are longer than a sequence are read in overlapping windows (Devlin et al. 2019, appendix).
class AnswersTask : public ExamplesTask {
 public:
  AnswersTask(const TrainOptions& options, Purpose purpose)
      : ExamplesTask(options, purpose, {.limits_evaluation = false}),
        training_(read_questions(options.labels)) {
    const auto most = static_cast<size_t>(options.evaluate_windows);
    if (purpose == Purpose::measure && most > 0 && training_.questions.size() > most)
      training_.questions.resize(most);
    held_out_ = training_;
    if (purpose == Purpose::measure) return;
    for (const bool given : {!options.class_weights.empty(), options.label_smoothing != 0,
                             options.problem_type != model::ProblemType::automatic,
                             !options.distillation.teacher.empty(), options.loss != nullptr})
      check_field(!given, "labels",
                  "questions are given with an option of labels (`class_weights`, "
                  "`label_smoothing`, `loss`, `problem_type` or `teacher`); expected none of them");
    if (!options.validation_labels.empty()) {
      check_field(hold_questions(options.validation_labels), "validation_labels",
                  "has no questions, but `labels` has; expected the same kind");
      held_out_ = read_questions(options.validation_labels);
    } else {
      hold_out();
    }
  }

  text::Tokenizer make_tokenizer(const model::Spec& spec) override {
    const EachText texts = [this](const auto& use) {
      for (const std::string& context : training_.contexts) use(context);
      for (const LabelledQuestion& question : training_.questions) use(question.text);
    };
    return make_task_tokenizer(TokenizerUse::masking, texts, options_.tokenizer, spec.context);
  }

  void shape(model::Spec& spec, const text::Tokenizer& tokenizer, const model::Origin& origin,
             const Say& say) override {
    check_field(!(spec.encoder && spec.decoder) && spec.input.kind == model::InputKind::tokens,
                "labels",
                "questions need a model of text with one stack; expected an encoder or a "
                "decoder-only model");
    if (spec.head.kind == model::HeadKind::span) return;
    check_field(purpose_ == Purpose::train, "labels",
                "questions need a model with a head for answers; expected one that was trained on "
                "questions");
    const bool fresh = origin.family == nullptr;
    if (fresh) set_padding(spec, tokenizer);
    const model::Family& family = fresh ? family_of_new(spec, tokenizer) : *origin.family;
    spec.head = model::head_of(family, spec, model::HeadKind::span, 2);
    if (!fresh) say("a new head for answers");
  }

  PassSize pass_size(const model::Spec& spec) const override {
    return {options_.batch, std::min(length_of(spec), kUsualWindow)};
  }

  std::unique_ptr<Examples> examples(const model::Spec& spec,
                                     const text::TranslationTokenizers& tokenizers,
                                     const model::Origin&, bool, const Say& say) override {
    const infer::TextFormat format =
        infer::TextFormat::of(tokenizers.source, spec, options_.length);
    std::vector<Window> windows;
    const int64_t questions = std::ssize(training_.questions);
    LabelledTokens learnt = windows_of(training_, format, windows);
    if (windows.size() > static_cast<size_t>(questions))
      say(fmt::format("{} questions are read in {} windows of at most {} tokens", questions,
                      windows.size(), format.most()));
    windows_.clear();
    LabelledTokens held_out = windows_of(held_out_, format, windows_);
    const LabelExamples::Settings settings{model::ProblemType::single_label, options_.batch, 0,
                                           options_.seed};
    auto examples =
        std::make_unique<LabelExamples>(std::move(learnt), std::move(held_out), settings, spec);
    examples->hash = training_.hash ^ held_out_.hash;
    return examples;
  }

  infer::EvaluationTask evaluation() const override { return infer::evaluation_task("answers"); }

  // The answer to a question is the most likely one of all windows. If some questions have none, it
  // is empty where "no answer" is more likely in its most likely window.
  // The windows of a question are judged together.
  void complete(infer::Predictions& found) const override {
    const std::vector<LabelledQuestion>& questions = held_out_.questions;
    std::vector<infer::SpanPrediction> best(questions.size());
    for (infer::SpanPrediction& each : best) each.score = each.none = -kNever;
    std::vector<double> none(questions.size(), kNever);
    for (const infer::SpanPrediction& span : found.spans) {
      const size_t question = windows_[static_cast<size_t>(span.sample)].question;
      if (span.score > best[question].score) best[question] = span;
      none[question] = std::min(none[question], span.none);
    }
    const bool optional =
        std::any_of(questions.begin(), questions.end(),
                    [](const LabelledQuestion& each) { return each.answers.empty(); });
    for (size_t i = 0; i < questions.size(); ++i) {
      const bool absent = best[i].score == -kNever || (optional && none[i] > best[i].score);
      std::vector<std::string> truths;
      for (const LabelledQuestion::Answer& answer : questions[i].answers)
        truths.push_back(answer.text);
      found.answers.emplace_back(absent ? "" : text_of(best[i]), std::move(truths));
    }
  }

 private:
  static constexpr double kNever = 1e300;

  int64_t length_of(const model::Spec& spec) const {
    return options_.length > 0 ? std::min(options_.length, spec.context) : spec.context;
  }

  // Holds out the questions about evenly spaced contexts.
  void hold_out() {
    std::vector<LabelledQuestion> kept, others;
    const double share = options_.validation;
    const auto before = [&](size_t i) { return std::floor(static_cast<double>(i) * share); };
    for (LabelledQuestion& question : training_.questions) {
      const size_t i = question.context;
      (before(i + 1) > before(i) ? others : kept).push_back(std::move(question));
    }
    training_.questions = std::move(kept);
    held_out_.questions = std::move(others);
    check_field(!training_.questions.empty(), "validation",
                "holds out all questions; expected a smaller fraction, or more contexts");
  }

  std::string text_of(const infer::SpanPrediction& span) const {
    const Window& window = windows_[static_cast<size_t>(span.sample)];
    const auto bytes = [&](int64_t token) {
      return window.bytes[static_cast<size_t>(token - window.first)];
    };
    const size_t begin = bytes(span.begin).begin, end = bytes(span.end).end;
    const LabelledQuestion& question = held_out_.questions[window.question];
    return held_out_.contexts[question.context].substr(begin, end - std::min(begin, end));
  }

  static LabelledTokens windows_of(const QuestionSet& set, const infer::TextFormat& format,
                                   std::vector<Window>& windows) {
    LabelledTokens tokens;
    for (size_t i = 0; i < set.questions.size(); ++i) {
      const LabelledQuestion& question = set.questions[i];
      const std::vector<int32_t> question_ids = format.own_ids(question.text);
      const text::Encoding context = format.tokenizer().encoding(
          set.contexts[question.context], {.add_special_tokens = false, .truncate_and_pad = false});
      const int64_t around = std::ssize(question_ids) + format.added_to_pair();
      const int64_t room = format.most() - around;
      check_field(room >= 8, "length",
                  "the question {} and the special tokens take {} tokens of {}; expected longer "
                  "sequences",
                  question.id, around, format.most());
      const auto step = static_cast<size_t>(room - std::min(kSharedTokens, room / 2));
      for (size_t begin = 0;; begin += step) {
        const size_t end = std::min(context.ids.size(), begin + static_cast<size_t>(room));
        const infer::TokenizedText read =
            format.framed(question_ids, std::span(context.ids).subspan(begin, end - begin));
        const auto& bytes = context.byte_offsets;
        Window window{i,
                      format.before_second() + std::ssize(question_ids),
                      {bytes.begin() + std::ptrdiff_t(begin), bytes.begin() + std::ptrdiff_t(end)}};
        tokens.ids.add(read.ids);
        tokens.types.add(read.all_types());
        tokens.labels.add(labels_of(question, window));
        tokens.contexts.push_back({window.first, window.first + std::ssize(window.bytes)});
        windows.push_back(std::move(window));
        if (end == context.ids.size()) break;
      }
    }
    return tokens;
  }

  // Returns the first and the last token of the answer, or 0 and 0 if it is not in the window.
  static std::vector<int32_t> labels_of(const LabelledQuestion& question, const Window& window) {
    if (question.answers.empty() || window.bytes.empty()) return {0, 0};
    const LabelledQuestion::Answer& answer = question.answers.front();
    const auto begin = static_cast<size_t>(answer.begin), end = begin + answer.text.size();
    if (window.bytes.front().begin > begin || window.bytes.back().end < end) return {0, 0};
    size_t first = 0, last = window.bytes.size() - 1;
    while (window.bytes[first].end <= begin) ++first;
    while (window.bytes[last].begin >= end) --last;
    return {static_cast<int32_t>(window.first + static_cast<int64_t>(first)),
            static_cast<int32_t>(window.first + static_cast<int64_t>(last))};
  }

  QuestionSet training_, held_out_;
  std::vector<Window> windows_;  // of held_out_
};

}  // namespace

std::unique_ptr<ExamplesTask> make_answers_task(const TrainOptions& options,
                                                ExamplesTask::Purpose purpose) {
  return std::make_unique<AnswersTask>(options, purpose);
}

}  // namespace fovea::train
