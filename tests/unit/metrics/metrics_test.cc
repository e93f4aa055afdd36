#include "fovea/infer/metrics.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "metrics/correlation.h"
#include "metrics/predictions.h"
#include "support/expect_error.h"

namespace fovea::infer {
namespace {

TEST(EvaluationTasks, HaveUniqueNamesAndADecisiveMetric) {
  std::set<std::string> names;
  for (const EvaluationTask& task : evaluation_tasks()) {
    EXPECT_TRUE(names.insert(task.name).second) << task.name;
    std::set<std::string> metrics;
    for (const auto* list : {&task.loss, &task.metrics})
      for (const Metric& metric : *list) EXPECT_TRUE(metrics.insert(metric.name).second);
    EXPECT_TRUE(metrics.contains(task.decisive)) << task.name;
    EXPECT_FALSE(task.models.empty() || task.data.empty()) << task.name;
  }
  expect_error(ErrorKind::InvalidArgument, {"summaries is unknown", "next_token or masked"},
               [] { evaluation_task("summaries"); });
}

MetricValues all_values(const char* task, const Predictions& predictions) {
  MetricValues values = values_of(evaluation_task(task).loss, predictions);
  for (const auto& value : values_of(evaluation_task(task).metrics, predictions))
    values.push_back(value);
  return values;
}

TEST(Metrics, ComputePerplexityAndBitsPerByte) {
  Predictions found{.loss = std::log(2.0), .labels = 100, .bytes = 200};  // two bytes per token
  const MetricValues values = all_values("next_token", found);
  ASSERT_EQ(values.size(), 3u);
  EXPECT_EQ(value_of(values, "loss"), std::log(2.0));
  EXPECT_NEAR(value_of(values, "perplexity").value(), 2, 1e-12);
  EXPECT_NEAR(value_of(values, "bits_per_byte").value(), 0.5, 1e-12);
  found.bytes = 0;
  EXPECT_FALSE(value_of(all_values("next_token", found), "bits_per_byte"));
}

TEST(Metrics, ComputeAccuracyAndF1OfLabels) {
  const Predictions found{.choices = {{0, 0}, {0, 0}, {0, 1}, {1, 1}, {2, 1}}};
  const MetricValues values = all_values("labels", found);
  EXPECT_DOUBLE_EQ(value_of(values, "accuracy").value(), 0.6);
  // F1: 2 * 2 / (3 + 2), 2 * 1 / (1 + 3), 0
  EXPECT_NEAR(value_of(values, "f1").value(), (0.8 + 0.5 + 0) / 3, 1e-12);
  EXPECT_EQ(value_of(all_values("labels", {}), "accuracy"), 0);
}

TEST(Metrics, CompareRewards) {
  Predictions found;
  EXPECT_FALSE(value_of(all_values("dpo", found), "accuracy"));
  found.rewards = {{1, 2, 0}, {0, 2, -3}};
  const MetricValues values = all_values("dpo", found);
  EXPECT_DOUBLE_EQ(value_of(values, "accuracy").value(), 2.0 / 3);  // equal rewards do not count
  EXPECT_DOUBLE_EQ(value_of(values, "chosen_reward").value(), 1);
  EXPECT_DOUBLE_EQ(value_of(values, "margin").value(), 1 + 1.0 / 3);
  found.rewards = {{1, 2, 3}, {-1}, false};
  EXPECT_DOUBLE_EQ(value_of(all_values("kto", found), "margin").value(), 3);
  found.rewards.rejected.clear();  // a step may have answers of one kind only
  EXPECT_FALSE(value_of(all_values("kto", found), "margin"));
}

TEST(Metrics, ScoreTranslationsIfPresent) {
  Predictions found;
  EXPECT_FALSE(value_of(all_values("pairs", found), "bleu"));
  found.translations.emplace().emplace_back("a cat sat on the mat", "a cat sat on the mat");
  EXPECT_NEAR(value_of(all_values("pairs", found), "bleu").value(), 100, 1e-9);
  EXPECT_NEAR(value_of(all_values("pairs", found), "chrf").value(), 100, 1e-9);
  found.translations->emplace_back("a cat", "the dog");
  EXPECT_NEAR(value_of(all_values("pairs", found), "rouge_l").value(), 50, 1e-9);
}

TEST(Metrics, GiveCorrelationsOfSimilaritiesInPercent) {
  const Predictions found{.similarities = {{1, 2}, {2, 4}, {3, 6}, {4, 9}}};
  const MetricValues values = all_values("similarity", found);
  EXPECT_NEAR(value_of(values, "spearman").value(), 100, 1e-10);
  EXPECT_NEAR(value_of(values, "pearson").value(), 99.43767126843688, 1e-10);  // scipy's
}

TEST(Correlation, MatchesScipy) {
  EXPECT_NEAR(pearson({1, 2, 3, 4}, {2, 4, 6, 9}), 0.9943767126843688, 1e-12);  // scipy's
  EXPECT_NEAR(spearman({1, 2, 3, 4}, {2, 4, 6, 9}), 1, 1e-12);
  EXPECT_NEAR(spearman({1, 2, 2, 3}, {4, 1, 3, 2}), -0.632455532033676, 1e-12);  // with a tie
  EXPECT_EQ(spearman({1, 1, 1}, {1, 2, 3}), 0);
}

}  // namespace
}  // namespace fovea::infer
