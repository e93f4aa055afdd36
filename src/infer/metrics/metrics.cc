#include "fovea/infer/metrics.h"

#include <cmath>
#include <numbers>

#include "base/error.h"
#include "base/float_mode.h"
#include "base/math.h"
#include "base/ordered_json.h"
#include "fovea/core/machine.h"
#include "fovea/infer/translation_scores.h"
#include "metrics/bleu.h"
#include "metrics/correlation.h"
#include "metrics/entities.h"
#include "metrics/error_rates.h"
#include "metrics/predictions.h"
#include "metrics/rouge.h"
#include "metrics/ter.h"

namespace fovea::infer {
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

template <BleuTokenizer tokenizer>
struct BleuOf : Bleu {
  BleuOf() : Bleu(tokenizer) {}
};

Metric bleu_metric(BleuTokenizer tokenizer) {
  using enum BleuTokenizer;
  constexpr decltype(Metric::value) kValues[] = {
      corpus_score<BleuOf<mteval_13a>>, corpus_score<BleuOf<zh>>, corpus_score<BleuOf<characters>>,
      corpus_score<BleuOf<none>>};
  return {"bleu",
          "BLEU",
          "",
          2,
          true,
          kValues[static_cast<size_t>(tokenizer)],
          Bleu::signature(tokenizer)};
}

template <class Score>
Metric score_metric(const char* name, const char* title, bool greater_is_better = true) {
  return {name, title, "", 2, greater_is_better, corpus_score<Score>, Score::signature()};
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

template <double (ErrorRates::*rate)() const>
std::optional<double> error_rate(const Predictions& p) {
  if (!p.translations) return std::nullopt;
  ErrorRates rates;
  for (const auto& [transcript, reference] : *p.translations) rates.add(transcript, reference);
  return (rates.*rate)();
}

std::optional<double> generated_reward(const Predictions& p) {
  if (p.generated_rewards.empty()) return std::nullopt;
  return mean_of(p.generated_rewards);
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

// A score of all entities together.
template <double (ClassCounts::*score)() const>
std::optional<double> entity_score(const Predictions& p) {
  if (!mark_entities(p.names)) return std::nullopt;
  std::vector<ClassCounts> counts;
  for (const auto& [type, count] : entity_counts(p.choices, p.ends, p.names))
    counts.push_back(count);
  return (total_of(counts).*score)();
}

template <double (*correlation)(const std::vector<double>&, const std::vector<double>&)>
std::optional<double> number_correlation(const Predictions& p) {
  if (p.numbers.empty()) return std::nullopt;
  std::vector<double> numbers, predictions;
  for (const auto& [number, prediction] : p.numbers) {
    numbers.push_back(number);
    predictions.push_back(prediction);
  }
  return correlation(numbers, predictions);
}

std::optional<double> mean_error(const Predictions& p) {
  if (p.numbers.empty()) return std::nullopt;
  double sum = 0;
  for (const auto& [number, prediction] : p.numbers) sum += std::abs(number - prediction);
  return sum / static_cast<double>(p.numbers.size());
}

// Returns the fraction of the ranks below n.
double recall(const std::vector<int64_t>& ranks, int64_t n) {
  double right = 0;
  for (const int64_t rank : ranks) right += rank < n;
  return right / static_cast<double>(ranks.size());
}

template <std::vector<int64_t> Predictions::* ranks, int64_t n>
std::optional<double> recall_at(const Predictions& p) {
  if ((p.*ranks).empty()) return std::nullopt;
  return recall(p.*ranks, n);
}

Metric loss(const char* unit) {
  return {"loss", "loss", unit,
          6,      false,  [](const Predictions& p) -> std::optional<double> { return p.loss; }};
}

// The evaluations of classifiers: one label or several labels per text, a number, or labels of
// words.
std::vector<EvaluationTask> tasks_of_labels(const Metric& right) {
  using P = const Predictions&;
  using Value = std::optional<double>;
  const auto score = [](const char* name, const char* title, Value (*value)(P)) {
    return Metric{name, title, "", 4, true, value};
  };
  const auto percent = [](const char* name, const char* title, Value (*value)(P)) {
    return Metric{name, title, "", 2, true, value};
  };
  const Metric f1 = score("f1", "macro F1", [](P p) -> Value {
    return p.sets.width > 0 ? macro_f1(counts_of(p.sets), true) : macro_f1(counts_of(p.choices));
  });
  const Metric micro = score("f1_micro", "micro F1", [](P p) -> Value {
    return total_of(p.sets.width > 0 ? counts_of(p.sets) : counts_of(p.choices)).f1();
  });
  const Metric mcc = score("mcc", "MCC", [](P p) -> Value { return matthews(p.choices); });
  const Metric exact =
      score("accuracy", "exact matches", [](P p) -> Value { return accuracy(p.sets); });
  const std::vector<Metric> entities = {
      score("entity_f1", "entity F1", entity_score<&ClassCounts::f1>),
      score("entity_precision", "entity precision", entity_score<&ClassCounts::precision>),
      score("entity_recall", "entity recall", entity_score<&ClassCounts::recall>)};
  std::vector<Metric> of_words = {right, f1};
  of_words.insert(of_words.end(), entities.begin(), entities.end());
  const Metric error{"mae", "mean error", "", 4, false, mean_error};
  return {
      {"labels",
       "classifiers",
       "labelled texts",
       {loss("nats per label")},
       {right, f1, micro, mcc},
       "loss"},
      {"label_sets",
       "classifiers",
       "texts with several labels",
       {loss("nats per label")},
       {exact, f1, micro},
       "loss"},
      {"numbers",
       "classifiers with one output",
       "texts with a number",
       {loss("squared error")},
       {score("pearson", "pearson", number_correlation<pearson>),
        score("spearman", "spearman", number_correlation<spearman>), error},
       "loss"},
      {"answers",
       "models with a head for answers",
       "questions about texts",
       {loss("nats per window")},
       {percent("exact", "exact matches", [](P p) -> Value { return exact_answers(p.answers); }),
        percent("f1", "F1", [](P p) -> Value { return answer_f1(p.answers); })},
       "loss"},
      {"words", "classifiers", "labelled words", {loss("nats per label")}, of_words, "loss"}};
}

// The evaluations of preferences and of generated answers.
std::vector<EvaluationTask> tasks_of_answers() {
  const Metric margin{"margin", "margin", "", 4, true, reward_margin};
  const Metric chosen{"chosen_reward", "chosen", "", 4, true, chosen_reward};
  const Metric rejected{"rejected_reward", "rejected", "", 4, false, rejected_reward};
  const Metric order{"accuracy", "accuracy", "", 4, true, reward_accuracy};
  const std::vector<Metric> of_pairs = {order, margin, chosen, rejected};
  const auto preferences = [&](const char* name, const char* models) {
    return EvaluationTask{name,     models, "pairs of answers", {loss("nats per pair")},
                          of_pairs, "loss"};
  };
  const Metric reward{"reward", "reward", "", 4, true, generated_reward};
  const Metric length{
      "answer_tokens",
      "tokens of an answer",
      "",
      1,
      false,
      [](const Predictions& p) -> std::optional<double> { return p.answer_tokens; }};
  return {preferences("reward", "classifiers"),
          preferences("dpo", "decoders"),
          {"kto",
           "decoders",
           "judged answers",
           {loss("per answer")},
           {margin, chosen, rejected},
           "loss"},
          preferences("orpo", "decoders"),
          preferences("simpo", "decoders"),
          {"generated_answers", "decoders", "prompts", {}, {reward, length}, "reward"}};
}

std::vector<EvaluationTask> make_tasks() {
  using P = const Predictions&;
  using Value = std::optional<double>;
  const auto perplexity = [](const char* title) {
    return Metric{
        "perplexity", title, "", 4, false, [](P p) -> Value { return math::exp(p.loss); }};
  };
  const Metric bits{"bits_per_byte", "bits per byte", "", 6, false, bits_per_byte};
  const Metric right{"accuracy", "accuracy", "",
                     4,          true,       [](P p) -> Value { return accuracy(p.choices); }};
  const Metric mcc{"mcc", "MCC", "", 4, true, [](P p) -> Value { return matthews(p.choices); }};
  const Metric words{"wer", "WER", "", 4, false, error_rate<&ErrorRates::words>};
  const Metric characters{"cer", "CER", "", 4, false, error_rate<&ErrorRates::characters>};
  const Metric rank{"spearman", "spearman", "", 2, true, percent_correlation<spearman>};
  const Metric linear{"pearson", "pearson", "", 2, true, percent_correlation<pearson>};

  // BLEU, chrF2 and ROUGE-L: a line of the progress of a training has no room for all.
  const std::vector<Metric> scores = translation_metrics(BleuTokenizer::mteval_13a);
  const std::vector<Metric> of_pairs = {scores[0], scores[1], scores.back()};
  const std::vector<Metric> of_tokens = {loss("nats per token"), perplexity("perplexity"), bits};
  const std::vector<Metric> of_each_token = {loss("nats per token"), perplexity("pseudo-ppl")};
  std::vector<EvaluationTask> tasks = {
      {"next_token", "decoders", "text", of_tokens, {}, "loss"},
      {"masked", "encoders", "text", of_tokens, {right}, "loss"},
      {"one_by_one", "encoders", "text", of_each_token, {right}, "loss"},
      {"spans", "encoder-decoders", "text", of_tokens, {}, "loss"},
      {"replaced_tokens", "encoders", "text", {loss("nats per token")}, {right, mcc}, "loss"},
      {"skip_gram", "word vectors", "text", {loss("nats per pair of tokens")}, {}, "loss"},
      {"pairs", "encoder-decoders", "pairs of texts", of_tokens, of_pairs, "bleu"},
      {"speech", "speech models", "recordings", of_tokens, {words, characters}, "wer"},
      {"chats",
       "decoders",
       "conversations",
       {loss("nats per trained token"), perplexity("perplexity")},
       {right},
       "loss"},
      {"retrieval",
       "models of images and texts",
       "images with captions",
       {loss("nats per image")},
       {{"text_recall_1", "text R@1", "", 4, true, recall_at<&Predictions::text_ranks, 1>},
        {"text_recall_5", "text R@5", "", 4, true, recall_at<&Predictions::text_ranks, 5>},
        {"image_recall_1", "image R@1", "", 4, true, recall_at<&Predictions::image_ranks, 1>},
        {"image_recall_5", "image R@5", "", 4, true, recall_at<&Predictions::image_ranks, 5>}},
       "loss"},
      {"similarity", "embedders", "scored pairs of texts", {}, {rank, linear}, "spearman"}};
  for (EvaluationTask& task : tasks_of_answers()) tasks.push_back(std::move(task));
  for (EvaluationTask& task : tasks_of_labels(right)) tasks.push_back(std::move(task));
  return tasks;
}

LabelScores scores_of(const std::string& name, const ClassCounts& counts) {
  return {name, counts.precision(), counts.recall(), counts.f1(), counts.labelled};
}

}  // namespace

std::vector<Metric> translation_metrics(BleuTokenizer tokenizer) {
  std::vector<Metric> metrics = {bleu_metric(tokenizer),
                                 score_metric<Chrf>("chrf", "chrF2"),
                                 score_metric<ChrfOfWords>("chrf_plus_plus", "chrF2++"),
                                 score_metric<Ter>("ter", "TER", false),
                                 score_metric<MeanRouge<&Rouge::one>>("rouge_1", "ROUGE-1"),
                                 score_metric<MeanRouge<&Rouge::two>>("rouge_2", "ROUGE-2"),
                                 score_metric<MeanRouge<&Rouge::l>>("rouge_l", "ROUGE-L")};
  // In place of sacrebleu's version.
  for (Metric& metric : metrics) metric.signature += "|version:fovea-" + version();
  return metrics;
}

MetricValues score_translations(const std::vector<std::string>& hypotheses,
                                const std::vector<std::string>& references,
                                BleuTokenizer tokenizer) {
  const FloatMode mode;
  check(hypotheses.size() == references.size(),
        "{} translations, {} references; expected equal numbers", hypotheses.size(),
        references.size());
  Predictions found;
  auto& translations = found.translations.emplace();
  for (size_t i = 0; i < hypotheses.size(); ++i)
    translations.emplace_back(hypotheses[i], references[i]);
  return values_of(translation_metrics(tokenizer), found);
}

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

std::optional<LabelReport> label_report(const Predictions& p) {
  if (p.names.empty()) return std::nullopt;
  LabelReport report;
  if (!p.ends.empty() && mark_entities(p.names)) {
    for (const auto& [type, counts] : entity_counts(p.choices, p.ends, p.names))
      report.labels.push_back(scores_of(type, counts));
    return report;
  }
  const bool sets = p.sets.width > 0;
  std::vector<ClassCounts> counts = sets ? counts_of(p.sets) : counts_of(p.choices);
  counts.resize(p.names.size());
  for (size_t i = 0; i < counts.size(); ++i)
    report.labels.push_back(scores_of(p.names[i], counts[i]));
  constexpr size_t kMostLabels = 50;
  if (sets || p.names.size() > kMostLabels) return report;
  report.confusion.assign(p.names.size(), std::vector<int64_t>(p.names.size()));
  for (const auto& [label, choice] : p.choices)
    ++report.confusion[static_cast<size_t>(label)][static_cast<size_t>(choice)];
  return report;
}

std::string label_json(const LabelReport& report) {
  nlohmann::ordered_json json;
  auto& labels = json["labels"] = nlohmann::ordered_json::object();
  for (const LabelScores& label : report.labels)
    labels[label.name] = {{"precision", label.precision},
                          {"recall", label.recall},
                          {"f1", label.f1},
                          {"support", label.support}};
  if (!report.confusion.empty()) json["confusion"] = report.confusion;
  return json_line(json);
}

}  // namespace fovea::infer
