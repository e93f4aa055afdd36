#include "fovea/evaluate.h"

#include "api/model_parts.h"
#include "api/pseudo_perplexity.h"
#include "base/fields.h"
#include "base/float_mode.h"
#include "base/math.h"
#include "data/lines.h"
#include "data/token_store.h"
#include "generate/rules.h"
#include "metrics/predictions.h"
#include "train/check_options.h"
#include "train/evaluation.h"
#include "train/tasks/examples_task.h"

namespace fovea {
namespace {

using Progress = EvaluationProgress;

void tell(const Progress& progress, int64_t n, int64_t count) {
  const double fraction = static_cast<double>(n) / static_cast<double>(count + 1);
  if (progress && !progress(fraction)) fail(ErrorKind::Failed, "eval: interrupted");
}

// Sets the results that follow from the predictions.
void add_metrics(Evaluation& result, const EvaluationTask& task, const Predictions& found) {
  result.objective = task.name;
  result.loss = found.loss;
  result.perplexity = math::exp(found.loss);
  result.tokens = found.labels;
  result.bytes = found.bytes;
  result.metrics = values_of(task.loss, found);
  result.bits_per_byte = value_of(result.metrics, "bits_per_byte").value_or(0);
  for (const auto& metric : values_of(task.metrics, found)) result.metrics.push_back(metric);
}

Evaluation next_tokens(const Model& model, const std::vector<std::string>& data,
                       const Progress& progress) {
  checked_writer(model.spec());
  // Enough rows for matrix products at full speed, and few enough that the logits are small.
  constexpr int64_t kTokensAtOnce = 4096;
  const Tokenizer& tokenizer = model.tokenizer();
  Corpus corpus(std::vector<std::filesystem::path>(data.begin(), data.end()));
  const TokenStore store(corpus, tokenizer, {.validation = 0, .cache = {}});
  const TokenSpan& tokens = store.training();
  check(tokens.count >= 2, "{}: {} tokens; expected at least 2", data.front(), tokens.count);

  const int64_t predicted = tokens.count - 1;  // the first token is not predicted
  const int64_t context = std::min(model.spec().context, predicted);
  const int64_t whole = predicted / context, rest = predicted % context;
  const auto window = [&](int64_t start, int64_t rows, int64_t length) {
    Batch batch;
    batch.target.ids = empty({rows, length}, DType::i32);
    batch.labels = empty({rows, length}, DType::i32);
    batch.asked = batch.tokens = rows * length;
    tokens.copy(start, rows * length, batch.target.ids.data_as<int32_t>());
    tokens.copy(start + 1, rows * length, batch.labels.data_as<int32_t>());
    return batch;
  };
  const int64_t rows = std::max<int64_t>(1, kTokensAtOnce / context);
  const int64_t batches = (whole + rows - 1) / rows;
  Predictions found =
      predict(model.parts().transformer, DType::f32, batches + (rest > 0 ? 1 : 0), [&](int64_t n) {
        tell(progress, n, batches);
        if (n == batches) return window(whole * context, 1, rest);
        return window(n * rows * context, std::min(rows, whole - n * rows), context);
      });
  found.bytes = tokens.bytes;
  Evaluation result;
  add_metrics(result, evaluation_task("next_token"), found);
  if (const auto unknown = tokenizer.unknown_id()) {
    std::vector<int32_t> ids(4096);
    for (int64_t at = 0; at < tokens.count; at += static_cast<int64_t>(ids.size())) {
      const int64_t length = std::min<int64_t>(static_cast<int64_t>(ids.size()), tokens.count - at);
      tokens.copy(at, length, ids.data());
      result.unknown += std::count(ids.begin(), ids.begin() + length, *unknown);
    }
  }
  return result;
}

// Adds translations of the sources to the predictions.
void translate_pairs(const Model& model, const EvaluationData& data, const Progress& progress,
                     Predictions& found) {
  const TextPairs pairs = read_pairs(data.pairs, "pairs");
  auto& translations = found.translations.emplace();
  size_t read = 0;
  translate(
      model, *data.translation,
      [&]() -> std::optional<std::string> {
        if (read == pairs.sources.size()) return std::nullopt;
        return pairs.sources[read++];
      },
      [&](const Translation& translation) {
        tell(progress, std::ssize(translations), std::ssize(pairs.sources));
        translations.emplace_back(translation.best[0].text, pairs.targets[translations.size()]);
        return true;
      });
}

// Evaluates as in training, but on all data; `translate` may add translations to the predictions.
Evaluation by_task(const Model& model, const TrainOptions& options, const Progress& progress,
                   const std::function<void(Predictions&)>& translate) {
  const Transformer& transformer = model.parts().transformer;
  const Origin& origin = model.parts().origin;
  const Spec& spec = model.spec();
  Evaluation result;
  const Say say = [&](std::string note) { result.notes.push_back(std::move(note)); };
  const std::unique_ptr<ExamplesTask> task =
      open_task(options, spec, ExamplesTask::Purpose::measure);
  Spec shaped = spec;
  task->shape(shaped, model.tokenizer(), origin, [](const std::string&) {});
  const std::vector<std::string> labels = task->labels();
  check_field(write_spec(shaped) == write_spec(spec) && (labels.empty() || labels == origin.labels),
              "labels",
              "the model's head does not have these labels ({}); expected a model that was "
              "trained on them",
              fmt::join(labels, ", "));
  const auto examples =
      task->examples(spec, {model.tokenizer(), *model.parts().target_tokenizer}, origin, true, say);
  const int64_t batches = examples->validation_batches();
  Predictions found = predict(transformer, DType::f32, batches, [&](int64_t n) {
    tell(progress, n, batches);
    return examples->validation(n);
  });
  found.bytes = examples->held_out.bytes;
  if (translate) translate(found);
  add_metrics(result, task->evaluation(), found);
  result.sequences = examples->held_out.sequences;
  return result;
}

}  // namespace

void visit(EvaluationData& d, OptionVisitor& v) {
  v.texts({"text", "text files, directories or JSON lines"}, d.text);
  v.texts({"pairs",
           "instead of text: a file of source lines and a file of target lines, or one file of "
           "lines source<TAB>target"},
          d.pairs);
  v.texts({"labels",
           "instead of text: lines text<TAB>label, or JSON lines with \"text\" and \"label\""},
          d.labels);
  v.boolean({"one_by_one", "encoders: mask one token at a time, with one pass per token (slow)"},
            d.one_by_one);
  bool translates = d.translation.has_value();
  v.group({"translation", "translate the sources of the pairs"}, translates);
  if (!translates) return d.translation.reset();
  if (!d.translation) d.translation.emplace();
  TranslateOptions& t = *d.translation;
  constexpr int64_t kMostBeams = 1024;  // as in TranslateOptions
  v.integer({"translation_beams", "pairs: hypotheses of the beam search; 0 = do not translate"},
            t.beams, 0, kMostBeams);
  v.text({"translation_source_prefix", "pairs: text prepended to every source"}, t.source_prefix);
  v.text({"translation_task",
          "pairs: a task in config.json, whose prefix is prepended to every source"},
         t.task);
}

Evaluation evaluate(const Model& model, const EvaluationData& data, const Progress& progress) {
  const FloatMode mode;
  check_fields(data);
  constexpr int64_t kLongest = 1024, kTokensAtOnce = 4096;  // limits the memory of activations
  TrainOptions options;
  options.data = data.text;
  options.pairs = data.pairs;
  if (data.translation) options.source_prefix = source_prefix_of(model, *data.translation);
  options.labels = data.labels;
  options.validation = 0;
  options.evaluate_windows = 0;
  options.length = std::min(model.spec().context, kLongest);
  options.batch = std::max<int64_t>(1, kTokensAtOnce / options.length);
  check_data(options);
  if (data.one_by_one) {
    Evaluation result;
    add_metrics(result, evaluation_task("one_by_one"),
                predict_one_by_one(model, data.text, options.length, options.batch, progress));
    return result;
  }
  if (objective_of(options, model.spec()) == Objective::next_token)
    return next_tokens(model, data.text, progress);
  if (!data.translation || data.translation->beams == 0)
    return by_task(model, options, progress, {});
  // The fraction of the progress for scoring the pairs, which is faster than translating.
  constexpr double kScoring = 0.2;
  const auto part = [&](double from, double to) -> Progress {
    if (!progress) return {};
    return [&progress, from, to](double done) { return progress(from + (to - from) * done); };
  };
  return by_task(model, options, part(0, kScoring), [&](Predictions& found) {
    translate_pairs(model, data, part(kScoring, 1), found);
  });
}

}  // namespace fovea
