#include <algorithm>
#include <cmath>

#include "base/fields.h"
#include "data/labelled.h"
#include "data/task_tokenizer.h"
#include "loop/examples_task.h"
#include "loop/special_tokens.h"
#include "metrics/entities.h"
#include "tasks/label_examples.h"
#include "tasks/label_tokens.h"

namespace fovea::train {
namespace {

constexpr int64_t kUsualText = 64;       // estimated tokens per text, for the plan
constexpr int64_t kTokensAtOnce = 4096;  // of an evaluation: limits the memory of activations

const char* kind_of(const LabelledTexts& texts) {
  if (texts.by_word) return "one label per word";
  switch (texts.problem) {
    case model::ProblemType::regression: return "a number per text";
    case model::ProblemType::multi_label: return "several labels per text";
    default: return "one label per text";
  }
}

// Predicts the label of a text or of each word, several labels of a text, or a number.
class LabelsTask : public ExamplesTask {
 public:
  LabelsTask(const TrainOptions& options, Purpose purpose)
      : ExamplesTask(options, purpose),
        training_(read_labelled(options.labels, options.problem_type)) {
    names_ = label_names(training_);
    if (purpose == Purpose::measure) {
      const auto most = static_cast<size_t>(options.evaluate_windows);
      if (most > 0 && training_.rows.size() > most) training_.rows.resize(most);
      return;
    }
    summary_ = summary_of(training_);
    check_loss();
    if (training_.problem == model::ProblemType::single_label)
      check(names_.size() >= 2, "{}: has only one label, \"{}\"; expected at least two",
            options.labels.front(), names_.front());
    check(!names_.empty() || training_.problem == model::ProblemType::regression,
          "{}: its texts have no labels; expected at least one", options.labels.front());
    if (!options.validation_labels.empty()) {
      validation_ = read_labelled(options.validation_labels, training_.problem);
      check_field(validation_.by_word == training_.by_word, "validation_labels",
                  "has {}, but `labels` has {}; expected the same kind", kind_of(validation_),
                  kind_of(training_));
    } else {
      hold_out();
    }
  }

  text::Tokenizer make_tokenizer(const model::Spec& spec) override {
    const EachText texts = [this](const auto& use) {
      for (const LabelledText& row : training_.rows) {
        for (const std::string* text : {&row.text, &row.pair})
          if (!text->empty()) use(*text);
        if (!row.words.empty()) use(fmt::format("{}", fmt::join(row.words, " ")));
      }
    };
    const bool both = spec.encoder && spec.decoder;
    return make_task_tokenizer(both ? TokenizerUse::translation : TokenizerUse::masking, texts,
                               options_.tokenizer, spec.context);
  }

  void shape(model::Spec& spec, const text::Tokenizer& tokenizer, const model::Origin& origin,
             const Say& say) override {
    const bool both = spec.encoder && spec.decoder;
    check_field(spec.input.kind == model::InputKind::tokens, "labels",
                "the model does not read text; expected a model for text");
    check_field(!both || !training_.by_word, "labels",
                "labels of words do not suit an encoder-decoder; expected an encoder or a "
                "decoder-only model");
    const model::HeadKind kind =
        training_.by_word ? model::HeadKind::token : model::HeadKind::sequence;
    if (spec.head.kind == kind && takes_over(spec, origin)) return;
    const bool fresh = origin.family == nullptr;
    if (fresh) set_padding(spec, tokenizer);
    const model::Family& family = fresh ? family_of_new(spec, tokenizer) : *origin.family;
    const std::string before = model::write_spec(spec);
    spec.head = model::head_of(family, spec, kind, outputs());
    const bool same = model::write_spec(spec) == before;
    set_classifier_padding(spec, tokenizer, origin);
    if (fresh) return;
    if (same) {
      say(fmt::format("the head's {} outputs get new labels", outputs()));
    } else if (names_.empty()) {
      say("a new head for a number");
    } else {
      say(fmt::format("a new head for {} labels", names_.size()));
    }
  }

  std::vector<std::string> labels() const override { return names_; }
  model::ProblemType problem() const override {
    return training_.by_word ? model::ProblemType::automatic : training_.problem;
  }

  PassSize pass_size(const model::Spec& spec) const override {
    return {options_.batch, std::min(spec.context, kUsualText)};
  }

  model::Origin origin(const model::Spec& spec, const text::Tokenizer& tokenizer) const override {
    return spec.encoder && spec.decoder ? encoder_decoder_origin(spec, tokenizer) : model::Origin();
  }

  std::unique_ptr<Examples> examples(const model::Spec& spec,
                                     const text::TranslationTokenizers& tokenizers,
                                     const model::Origin& origin, bool, const Say& say) override {
    const text::Tokenizer& tokenizer = tokenizers.source;
    const bool both = spec.encoder && spec.decoder;
    if (purpose_ == Purpose::train)
      for (const std::string& line : summary_) say(line);
    if (training_.empty + validation_.empty > 0)
      say(fmt::format("{} empty texts are skipped", training_.empty + validation_.empty));
    const bool measured = purpose_ == Purpose::measure;
    const infer::TextFormat format =
        infer::TextFormat::of(tokenizer, spec, measured ? 0 : options_.length);
    LabelTokens tokens(format, names_);
    LabelledTokens learnt = tokens(training_), held_out = learnt;
    if (purpose_ == Purpose::train) {
      held_out = tokens(validation_);
      if (!options_.class_weights.empty())
        learnt.label_weights = std::make_shared<const std::vector<float>>(
            class_weights(options_.class_weights, names_, learnt));
      say_names_of_tokens(tokenizer, say);
    }
    if (training_.by_word && !infer::mark_entities(names_) &&
        std::find(names_.begin(), names_.end(), "O") != names_.end())
      say("the labels have no prefixes such as B- and I-, so entities are not counted");
    if (tokens.cut() > 0)
      say(fmt::format("{} texts are truncated to {} tokens", tokens.cut(), format.most()));
    const LabelExamples::Settings settings{
        training_.problem, options_.batch, both ? decoder_start(tokenizer, origin) : 0,
        options_.seed, measured ? kTokensAtOnce : LabelExamples::kNoLimit};
    auto examples =
        std::make_unique<LabelExamples>(std::move(learnt), std::move(held_out), settings, spec);
    examples->hash = training_.hash ^ validation_.hash;
    return examples;
  }

  infer::EvaluationTask evaluation() const override {
    if (training_.problem == model::ProblemType::multi_label)
      return infer::evaluation_task("label_sets");
    if (training_.problem == model::ProblemType::regression)
      return infer::evaluation_task("numbers");
    if (!training_.by_word) return infer::evaluation_task("labels");
    infer::EvaluationTask task = infer::evaluation_task("words");
    if (!infer::mark_entities(names_))
      std::erase_if(task.metrics,
                    [](const infer::Metric& metric) { return metric.name.starts_with("entity"); });
    return task;
  }

 private:
  int64_t outputs() const {
    return training_.problem == model::ProblemType::regression ? 1 : std::ssize(names_);
  }

  // Refuses options that the loss of these labels does not have.
  void check_loss() const {
    const char* kind = kind_of(training_);
    const bool one = training_.problem == model::ProblemType::single_label;
    const bool has_weights = !options_.class_weights.empty();
    check_field(one || options_.label_smoothing == 0, "label_smoothing",
                "given for {}; expected 0, or one label per text", kind);
    check_field(one || options_.distillation.teacher.empty(), "teacher",
                "given for {}; expected one label per text", kind);
    check_field(one || !options_.loss, "loss", "given for {}; expected one label per text", kind);
    const model::ProblemType problem = options_.problem_type;
    check_field(!training_.by_word || problem == model::ProblemType::automatic ||
                    problem == model::ProblemType::single_label,
                "problem_type", "given for {}; expected automatic", kind);
    check_field(!has_weights || training_.problem != model::ProblemType::regression,
                "class_weights", "given for {}; expected labels", kind);
    check_field(!has_weights || options_.label_smoothing == 0, "class_weights",
                "given with `label_smoothing`; expected one of them");
    check_field(!has_weights || options_.distillation.teacher.empty(), "class_weights",
                "given with `teacher`; expected one of them");
    check_field(!has_weights || !options_.loss, "class_weights",
                "given with `loss`; expected one of them");
  }

  void say_names_of_tokens(const text::Tokenizer& tokenizer, const Say& say) const {
    SpecialNames names(tokenizer);
    for (const LabelledText& row : training_.rows) {
      for (const std::string* text : {&row.text, &row.pair}) names.add(*text);
      for (const std::string& word : row.words) names.add(word);
    }
    say_names(names, say);
  }

  // Holds out evenly spaced texts, since files of labelled texts are often sorted by label.
  void hold_out() {
    std::vector<LabelledText> kept;
    const double share = options_.validation;
    const auto before = [&](size_t i) { return std::floor(static_cast<double>(i) * share); };
    for (size_t i = 0; i < training_.rows.size(); ++i) {
      auto& rows = before(i + 1) > before(i) ? validation_.rows : kept;
      rows.push_back(std::move(training_.rows[i]));
    }
    training_.rows = std::move(kept);
    validation_.by_word = training_.by_word;
    validation_.problem = training_.problem;
  }

  // Uses the head of the checkpoint if it has one output for a number, or all labels of the data;
  // returns whether it does.
  bool takes_over(const model::Spec& spec, const model::Origin& origin) {
    if (training_.problem == model::ProblemType::regression) return spec.head.labels == 1;
    const std::vector<std::string>& known = origin.labels;
    const bool all = std::all_of(names_.begin(), names_.end(), [&](const std::string& name) {
      return std::find(known.begin(), known.end(), name) != known.end();
    });
    if (all) names_ = known;
    return all;
  }

  LabelledTexts training_, validation_;
  std::vector<std::string> names_, summary_;
};

}  // namespace

std::unique_ptr<ExamplesTask> make_labels_task(const TrainOptions& options,
                                               ExamplesTask::Purpose purpose) {
  return std::make_unique<LabelsTask>(options, purpose);
}

}  // namespace fovea::train
