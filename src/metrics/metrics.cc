#include "fovea/metrics.h"

#include <numbers>
#include <numeric>

#include "base/error.h"
#include "base/math.h"
#include "fovea/doctor.h"
#include "metrics/bleu.h"
#include "metrics/correlation.h"
#include "metrics/predictions.h"
#include "metrics/rouge.h"

namespace fovea {
namespace {

std::optional<double> bits_per_byte(const Predictions& p) {
  if (p.bytes == 0) return std::nullopt;
  return p.loss * static_cast<double>(p.labels) / static_cast<double>(p.bytes) / std::numbers::ln2;
}

template <class Score>
std::optional<double> corpus_score(const Predictions& p) {
  if (!p.translations) return std::nullopt;
  Score score;
  for (const auto& [translation, reference] : *p.translations) score.add(translation, reference);
  return score.score();
}

std::optional<double> mean_reward(const Predictions& p) {
  if (p.rewards.empty()) return std::nullopt;
  return std::accumulate(p.rewards.begin(), p.rewards.end(), 0.0) /
         static_cast<double>(p.rewards.size());
}

template <double (*correlation)(const std::vector<double>&, const std::vector<double>&)>
std::optional<double> percent_correlation(const Predictions& p) {
  std::vector<double> similarities, scores;
  for (const auto& [similarity, score] : p.similarities) {
    similarities.push_back(similarity);
    scores.push_back(score);
  }
  return 100 * correlation(similarities, scores);
}

std::vector<EvaluationTask> make_tasks() {
  using P = const Predictions&;
  using Value = std::optional<double>;
  const auto loss = [](const char* unit) {
    return Metric{"loss", "loss", unit, 6, false, [](P p) -> Value { return p.loss; }};
  };
  const auto perplexity = [](const char* title) {
    return Metric{
        "perplexity", title, "", 4, false, [](P p) -> Value { return math::exp(p.loss); }};
  };
  const Metric bits{"bits_per_byte", "bits per byte", "", 6, false, bits_per_byte};
  const Metric right{"accuracy", "accuracy", "",
                     4,          true,       [](P p) -> Value { return accuracy(p.choices); }};
  const Metric f1{"f1", "f1", "", 4, true, [](P p) -> Value { return mean_f1(p.choices); }};
  const std::string by = "|version:fovea-" + version();  // in place of sacrebleu's version
  const Metric bleu{"bleu", "BLEU", "", 2, true, corpus_score<Bleu>, Bleu::signature() + by};
  const Metric chrf{"chrf", "chrF2", "", 2, true, corpus_score<Chrf>, Chrf::signature() + by};
  const Metric rouge{
      "rouge_l", "ROUGE-L", "", 2, true, corpus_score<RougeL>, RougeL::signature() + by};
  const Metric rank{"spearman", "spearman", "", 2, true, percent_correlation<spearman>};
  const Metric linear{"pearson", "pearson", "", 2, true, percent_correlation<pearson>};

  const Metric reward{"reward", "reward", "", 4, true, mean_reward};
  const Metric length{"answer_tokens",
                      "tokens of an answer",
                      "",
                      1,
                      false,
                      [](P p) -> Value { return p.answer_tokens; }};

  const std::vector<Metric> of_tokens = {loss("nats per token"), perplexity("perplexity"), bits};
  const std::vector<Metric> of_each_token = {loss("nats per token"), perplexity("pseudo-ppl")};
  return {
      {"next_token", "decoders", "text", of_tokens, {}, "loss"},
      {"masked", "encoders", "text", of_tokens, {right}, "loss"},
      {"one_by_one", "encoders", "text", of_each_token, {right}, "loss"},
      {"spans", "encoder-decoders", "text", of_tokens, {}, "loss"},
      {"pairs", "encoder-decoders", "pairs of texts", of_tokens, {bleu, chrf, rouge}, "bleu"},
      {"labels", "classifiers", "labelled texts", {loss("nats per label")}, {right, f1}, "loss"},
      {"chats",
       "decoders",
       "conversations",
       {loss("nats per trained token"), perplexity("perplexity")},
       {right},
       "loss"},
      {"answers", "decoders", "prompts", {}, {reward, length}, "reward"},
      {"similarity", "embedders", "scored pairs of texts", {}, {rank, linear}, "spearman"}};
}

}  // namespace

const std::vector<EvaluationTask>& evaluation_tasks() {
  static const std::vector<EvaluationTask> tasks = make_tasks();
  return tasks;
}

const EvaluationTask& evaluation_task(std::string_view name) {
  std::vector<std::string_view> names;
  for (const EvaluationTask& task : evaluation_tasks()) {
    if (task.name == name) return task;
    names.push_back(task.name);
  }
  fail(ErrorKind::InvalidArgument, "evaluation: {} is unknown; expected {}", name,
       fmt::join(names, " or "));
}

std::optional<double> value_of(const MetricValues& values, std::string_view name) {
  for (const auto& [each, value] : values)
    if (each == name) return value;
  return std::nullopt;
}

MetricValues values_of(const std::vector<Metric>& metrics, const Predictions& predictions) {
  MetricValues values;
  for (const Metric& metric : metrics)
    if (const auto value = metric.value(predictions)) values.emplace_back(metric.name, *value);
  return values;
}

}  // namespace fovea
