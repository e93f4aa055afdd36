#include "start/evaluate_model.h"

#include <algorithm>

#include "base/fields.h"
#include "base/math.h"
#include "data/token_store.h"
#include "generate/rules.h"
#include "loop/evaluation.h"
#include "loop/examples_task.h"
#include "losses/token_rows.h"
#include "open/model_parts.h"

namespace fovea::train {
namespace {

// A model in use cannot get the special tokens of a chat template, as in training.
void check_special_tokens(const ExamplesTask& task, const text::Tokenizer& tokenizer) {
  const std::vector<std::string> missing = missing_tokens(tokenizer, task);
  check_field(missing.empty(), "chat_template",
              "the tokenizer lacks the special tokens {}; expected the template on which the model "
              "was trained",
              fmt::join(missing, ", "));
}

// Keeps the first `count` tokens, and computes the bytes of their text.
void keep_first(TokenSpan& tokens, int64_t count, const text::Tokenizer& tokenizer) {
  std::vector<int32_t> ids(static_cast<size_t>(count));
  tokens.copy(0, count, ids.data());
  tokens.count = count;
  tokens.bytes = std::ssize(tokenizer.decode(ids, true));
}

// Learned positions and stored sines and cosines are tables of the context's length.
void check_context(const model::Spec& spec, int64_t longest) {
  const model::PositionSpec& positions = spec.decoder->position;
  const bool table = positions.kind == model::PositionKind::learned || positions.stored;
  check_field(!table || longest <= spec.context, "context",
              "{}; expected at most {}, the end of the model's table of positions", longest,
              spec.context);
}

}  // namespace

void add_metrics(infer::Evaluation& result, const infer::EvaluationTask& task,
                 const infer::Predictions& found) {
  result.objective = task.name;
  result.loss = found.loss;
  result.perplexity = math::exp(found.loss);
  result.tokens = found.labels;
  result.bytes = found.bytes;
  result.metrics = infer::values_of(task.loss, found);
  result.bits_per_byte = infer::value_of(result.metrics, "bits_per_byte").value_or(0);
  for (const auto& metric : infer::values_of(task.metrics, found)) result.metrics.push_back(metric);
  result.labels = infer::label_report(found);
}

void report_progress(const EvaluationProgress& progress, int64_t n, int64_t count) {
  const double fraction = static_cast<double>(n) / static_cast<double>(count + 1);
  if (progress && !progress(fraction)) fail(ErrorKind::Failed, "eval: interrupted");
}

infer::Evaluation evaluate_next_tokens(const model::Model& model,
                                       const std::vector<std::string>& data,
                                       const TextWindows& windows,
                                       const EvaluationProgress& progress) {
  const int64_t longest = windows.length;
  check_context(model.spec(), longest);
  infer::checked_writer(model.spec());
  // Enough rows for matrix products at full speed, and few enough that the logits are small.
  constexpr int64_t kTokensAtOnce = 4096;
  const text::Tokenizer& tokenizer = model.tokenizer();
  Corpus corpus(std::vector<std::filesystem::path>(data.begin(), data.end()));
  const TokenStore store(corpus, tokenizer, {.validation = 0, .cache = {}});
  TokenSpan tokens = store.training();
  check(tokens.count >= 2, "{}: {} tokens; expected at least 2", data.front(), tokens.count);

  const int64_t all = tokens.count - 1;  // the first token is not predicted
  const int64_t context = std::min(longest > 0 ? longest : model.spec().context, all);
  if (windows.most > 0 && windows.most < all / context)
    keep_first(tokens, windows.most * context + 1, tokenizer);
  const int64_t predicted = tokens.count - 1;
  const int64_t whole = predicted / context, rest = predicted % context;
  const auto window = [&](int64_t start, int64_t rows, int64_t length) {
    Batch batch;
    TokenRows ids(rows, length), labels(rows, length);
    tokens.copy(start, rows * length, ids.row(0));
    tokens.copy(start + 1, rows * length, labels.row(0));
    batch.target.ids = ids.tensor();
    batch.labels = labels.tensor();
    batch.predictions = batch.tokens = rows * length;
    return batch;
  };
  const int64_t rows = std::max<int64_t>(1, kTokensAtOnce / context);
  const int64_t batches = (whole + rows - 1) / rows;
  const infer::EvaluationTask& task = infer::evaluation_task("next_token");
  const int64_t all_batches = batches + (rest > 0 ? 1 : 0);
  infer::Predictions found = predict(
      model::parts_of(model).transformer, DType::f32, task, all_batches,
      [&](int64_t n) {
        report_progress(progress, n, batches);
        if (n == batches) return window(whole * context, 1, rest);
        return window(n * rows * context, std::min(rows, whole - n * rows), context);
      },
      windows.ranks);
  found.bytes = tokens.bytes;
  infer::Evaluation result;
  add_metrics(result, task, found);
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

infer::Evaluation evaluate_one_by_one(const model::Model& model,
                                      const std::vector<std::string>& data,
                                      const TextWindows& windows, int64_t batch,
                                      const EvaluationProgress& progress) {
  infer::Evaluation result;
  add_metrics(result, infer::evaluation_task("one_by_one"),
              predict_one_by_one(model, data, windows, batch, progress));
  return result;
}

infer::Evaluation evaluate_by_task(const model::Model& model, const TrainOptions& options,
                                   const EvaluationProgress& progress,
                                   const std::function<void(infer::Predictions&)>& translate) {
  const model::Transformer& transformer = model::parts_of(model).transformer;
  const model::Origin& origin = model::parts_of(model).origin;
  const model::Spec& spec = model.spec();
  infer::Evaluation result;
  const Say say = [&](std::string note) { result.notes.push_back(std::move(note)); };
  const std::unique_ptr<ExamplesTask> task =
      open_task(options, spec, ExamplesTask::Purpose::measure);
  check_special_tokens(*task, model.tokenizer());
  model::Spec shaped = spec;
  task->shape(shaped, model.tokenizer(), origin, [](const std::string&) {});
  const std::vector<std::string> labels = task->labels();
  check_field(model::write_spec(shaped) == model::write_spec(spec) &&
                  (labels.empty() || labels == origin.labels),
              "labels",
              "the model's head does not have these labels ({}); expected a model that was "
              "trained on them",
              fmt::join(labels, ", "));
  const auto examples = task->examples(
      spec, {model.tokenizer(), *model::parts_of(model).target_tokenizer}, origin, true, say);
  const int64_t batches = examples->validation_batches();
  infer::Predictions found =
      task->predict_batches(transformer, DType::f32, batches, [&](int64_t n) {
        report_progress(progress, n, batches);
        return examples->validation(n);
      });
  found.bytes = examples->held_out.bytes;
  task->complete(found);
  if (translate) translate(found);
  add_metrics(result, task->evaluation(), found);
  result.sequences = examples->held_out.sequences;
  return result;
}

}  // namespace fovea::train
