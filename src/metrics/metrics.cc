#include "fovea/metrics.h"

#include <numbers>

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

template <double (*correlation)(const std::vector<double>&, const std::vector<double>&)>
std::optional<double> percent_correlation(const Predictions& p) {
  std::vector<double> similarities, scores;
  for (const auto& [similarity, score] : p.similarities) {
    similarities.push_back(similarity);
    scores.push_back(score);
  }
  return 100 * correlation(similarities, scores);
}

double mean_of(const std::vector<double>& numbers) {
  double sum = 0;
  for (const double x : numbers) sum += x;
  return sum / static_cast<double>(numbers.size());
}

std::optional<double> chosen_reward(const Predictions& p) {
  if (p.rewards.chosen.empty()) return std::nullopt;
  return mean_of(p.rewards.chosen);
}

std::optional<double> rejected_reward(const Predictions& p) {
  if (p.rewards.rejected.empty()) return std::nullopt;
  return mean_of(p.rewards.rejected);
}

std::optional<double> reward_margin(const Predictions& p) {
  const auto chosen = chosen_reward(p), rejected = rejected_reward(p);
  if (!chosen || !rejected) return std::nullopt;
  return *chosen - *rejected;
}

// Returns the fraction of pairs whose chosen answer has the greater reward.
std::optional<double> reward_accuracy(const Predictions& p) {
  const auto& [chosen, rejected, paired] = p.rewards;
  if (!paired || chosen.empty()) return std::nullopt;
  double right = 0;
  for (size_t i = 0; i < chosen.size(); ++i) right += chosen[i] > rejected[i];
  return right / static_cast<double>(chosen.size());
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

  const Metric margin{"margin", "margin", "", 4, true, reward_margin};
  const Metric chosen{"chosen_reward", "chosen", "", 4, true, chosen_reward};
  const Metric rejected{"rejected_reward", "rejected", "", 4, false, rejected_reward};
  const Metric order{"accuracy", "accuracy", "", 4, true, reward_accuracy};
  const std::vector<Metric> of_pairs = {order, margin, chosen, rejected};
  const auto preferences = [&](const char* name, const char* models) {
    return EvaluationTask{name,     models, "pairs of answers", {loss("nats per pair")},
                          of_pairs, "loss"};
  };

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
      preferences("reward", "classifiers"),
      preferences("dpo", "decoders"),
      {"kto",
       "decoders",
       "judged answers",
       {loss("per answer")},
       {margin, chosen, rejected},
       "loss"},
      preferences("orpo", "decoders"),
      preferences("simpo", "decoders"),
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
