#include "fovea/evaluate.h"

#include <algorithm>

#include "base/fields.h"
#include "base/float_mode.h"
#include "data/preferences.h"
#include "data/text_pairs.h"
#include "generate/rules.h"
#include "generate/translation_languages.h"
#include "loop/check_options.h"
#include "loop/examples_task.h"
#include "loop/fields.h"
#include "loop/shared_evaluation.h"
#include "metrics/predictions.h"
#include "open/model_parts.h"
#include "start/evaluate_model.h"
#include "tasks/speech_task.h"

namespace fovea {
namespace {

// Adds translations of the sources to the predictions.
void translate_pairs(const model::Model& model, const EvaluationData& data,
                     const train::EvaluationProgress& progress, infer::Predictions& found) {
  train::TextPairs pairs = train::read_pairs(data.pairs, "pairs");
  if (data.limit > 0) train::shorten(pairs, data.limit);
  const auto translate = [&](int64_t begin, int64_t end) {
    std::vector<std::string> texts;
    const int64_t all = end - begin;
    infer::translate(
        model, *data.translation,
        [&]() -> std::optional<std::string> {
          if (begin == end) return std::nullopt;
          return pairs.sources[static_cast<size_t>(begin++)];
        },
        [&](const infer::Translation& translation) {
          train::report_progress(progress, std::ssize(texts), all);
          texts.push_back(translation.best[0].text);
          return true;
        });
    return texts;
  };
  auto& translations = found.translations.emplace();
  for (std::string& text : train::share_texts(data.ranks, std::ssize(pairs.sources), translate))
    translations.emplace_back(std::move(text), pairs.targets[translations.size()]);
}

// Adds transcripts of the recordings to the predictions.
void transcribe_recordings(const model::Model& model, const EvaluationData& data,
                           const train::EvaluationProgress& progress, infer::Predictions& found) {
  const train::Recordings recordings =
      train::read_recordings(data.pairs.empty() ? data.text : data.pairs);
  const model::ModelParts& parts = model::parts_of(model);
  const infer::Generator generator{parts.transformer, &*parts.target_tokenizer,
                                   infer::rules_of(parts.origin, parts.end_ids), DType::f32,
                                   parts.cache};
  train::add_transcripts(
      generator, parts.origin, parts.end_ids, recordings, data.translation->beams,
      [&](int64_t done) {
        train::report_progress(progress, done, std::ssize(recordings.files));
        return true;
      },
      data.ranks, found);
}

// Returns what a classifier predicts; a head with one output predicts a number.
model::ProblemType problem_of(const model::Spec& spec, const model::Origin& origin) {
  if (spec.head.kind != model::HeadKind::sequence) return model::ProblemType::automatic;
  const bool unknown = origin.problem == model::ProblemType::automatic;
  return unknown && spec.head.labels == 1 ? model::ProblemType::regression : origin.problem;
}

constexpr int64_t kLongest = 1024, kTokensAtOnce = 4096;  // limit the memory of activations

// Returns the options of a training that would hold out these data.
train::TrainOptions options_of(const model::Model& model, const EvaluationData& data) {
  train::TrainOptions options;
  options.data = data.text;
  options.pairs = data.pairs;
  if (data.translation && !train::writes_speech(model.spec()))
    options.source_prefix = infer::source_prefix_of(model, *data.translation);
  options.labels = data.labels;
  if (!data.labels.empty())
    options.problem_type = problem_of(model.spec(), model::parts_of(model).origin);
  options.chat_template = data.chat_template;
  options.train_on = data.train_on;
  options.validation = 0;
  options.ranks = data.ranks;
  options.evaluate_windows = data.limit;
  options.length = std::min(model.spec().context, kLongest);
  options.batch = std::max<int64_t>(1, kTokensAtOnce / options.length);
  return options;
}

}  // namespace

void visit(EvaluationData& d, OptionVisitor& v) {
  v.texts({"text", "text files, directories or JSON lines"}, d.text);
  v.texts({"pairs",
           "instead of text: a file of source lines and a file of target lines, or one file of "
           "lines source<TAB>target"},
          d.pairs);
  v.texts({"labels",
           "instead of text: lines text<TAB>label, JSON lines with \"text\" and \"label\" or "
           "\"labels\", .conll files of words and their labels, or questions as in SQuAD"},
          d.labels);
  v.texts({"images",
           "instead of text: images with labels or captions: folders, or lines image,label "
           "(.csv)"},
          d.images);
  v.integer({"context",
             "next tokens: tokens per window, also beyond the model's context unless its positions "
             "are learned; 0 = the model's context"},
            d.context, 0, 1 << 24);
  v.integer({"limit",
             "evaluate only the first windows of text, pairs, labelled texts or records; 0 = all"},
            d.limit, 0, int64_t{1} << 40);
  train::visit_answers(d.chat_template, d.train_on, false, v);
  v.boolean({"one_by_one", "encoders: mask one token at a time, with one pass per token (slow)"},
            d.one_by_one);
  bool translates = d.translation.has_value();
  v.group({"translation", "translate the sources of the pairs"}, translates);
  if (!translates) return d.translation.reset();
  if (!d.translation) d.translation.emplace();
  infer::TranslateOptions& t = *d.translation;
  constexpr int64_t kMostBeams = 1024;  // as in TranslateOptions
  v.integer({"translation_beams", "pairs: hypotheses of the beam search; 0 = do not translate"},
            t.beams, 0, kMostBeams);
  v.text({"translation_source_prefix", "pairs: text prepended to every source"}, t.source_prefix);
  v.text({"translation_task",
          "pairs: a task in config.json, whose prefix is prepended to every source"},
         t.task);
}

infer::Evaluation evaluate(const model::Model& model, const EvaluationData& data,
                           const train::EvaluationProgress& progress) {
  const FloatMode mode;
  check_fields(data);
  check_field(data.images.empty(), "images", "given for a model of texts; expected one of images");
  train::TrainOptions options = options_of(model, data);
  train::check_data(options);
  // Judged answers are conversations too, and no model is evaluated on their labels.
  if (train::preference_form(data.text) == train::PreferenceForm::judged)
    options.objective = train::Objective::chats;
  const train::Objective objective = train::objective_of(options, model.spec());
  if (objective == train::Objective::chats) {
    // Texts of several conversations share a row, so that the rows are as long as possible.
    options.length = std::min(model.spec().context, kTokensAtOnce);
    options.batch = 1;
  }
  if (objective == train::Objective::chats || train::learns_preferences(objective))
    options.from = model::parts_of(model).path;
  check_field(data.context == 0 || (objective == train::Objective::next_token && !data.one_by_one),
              "context",
              "given for another evaluation than that of next tokens; expected plain "
              "text and a decoder");
  const bool speech = objective == train::Objective::pairs && train::writes_speech(model.spec());
  const bool limited = objective <= train::Objective::labels && !speech;
  check_field(data.limit == 0 || limited, "limit",
              "given for {}; expected plain text, pairs or labelled texts",
              train::name_of(objective));
  if (data.one_by_one)
    return train::evaluate_one_by_one(model, data.text, {options.length, data.limit, data.ranks},
                                      options.batch, progress);
  if (objective == train::Objective::next_token)
    return train::evaluate_next_tokens(model, data.text, {data.context, data.limit, data.ranks},
                                       progress);
  if ((!speech && data.pairs.empty()) || !data.translation || data.translation->beams == 0)
    return train::evaluate_by_task(model, options, progress, {});
  // The fraction of the progress for scoring the pairs, which is faster than translating.
  constexpr double kScoring = 0.2;
  const auto part = [&](double from, double to) -> train::EvaluationProgress {
    if (!progress) return {};
    return [&progress, from, to](double done) { return progress(from + (to - from) * done); };
  };
  return train::evaluate_by_task(model, options, part(0, kScoring), [&](infer::Predictions& found) {
    if (speech)
      transcribe_recordings(model, data, part(kScoring, 1), found);
    else
      translate_pairs(model, data, part(kScoring, 1), found);
  });
}

}  // namespace fovea
