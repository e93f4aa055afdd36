// Compares metrics of rankings with pytrec_eval's, those of labelled pairs with
// sentence-transformers', and those of clusters and classes with scikit-learn's
// (tools/goldens/make_vector_metrics.py).

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>

#include "metrics/ranking.h"
#include "metrics/sentence_scores.h"

namespace fovea::infer {
namespace {

nlohmann::json vector_goldens() {
  std::ifstream file("tests/goldens/vector_metrics.json");
  EXPECT_TRUE(file) << "run from the project's root";
  return nlohmann::json::parse(file);
}

JudgedRanking judged_ranking(const std::map<std::string, int64_t>& judged,
                             const std::map<std::string, float>& scores) {
  std::vector<RankedDocument> found;
  for (const auto& [id, score] : scores) found.push_back({id, score});
  std::sort(found.begin(), found.end(), ranks_before);
  JudgedRanking ranking;
  for (const auto& [id, relevance] : judged) ranking.judged.push_back(relevance);
  for (const RankedDocument& each : found) {
    const auto relevance = judged.find(std::string(each.id));
    ranking.found.push_back(relevance == judged.end() ? 0 : relevance->second);
  }
  return ranking;
}

TEST(Rankings, HaveTheMetricsOfTrecEval) {
  const nlohmann::json all = vector_goldens();
  int64_t cases = 0, relevant = 0;
  for (const auto& each : all.at("rankings")) {
    const JudgedRanking ranking =
        judged_ranking(each["judged"].get<std::map<std::string, int64_t>>(),
                       each["scores"].get<std::map<std::string, float>>());
    relevant += ranking.relevant() > 0;
    const auto expect = [&](const std::string& name, double value) {
      EXPECT_NEAR(value, each["metrics"].at(name).get<double>(), 4e-16) << name << " of " << cases;
    };
    for (const int64_t k : all.at("cutoffs").get<std::vector<int64_t>>()) {
      const std::string of = "_" + std::to_string(k);
      expect("ndcg_cut" + of, normalised_gain(ranking, k));
      expect("map_cut" + of, average_precision_at(ranking, k));
      expect("recall" + of, recall_at(ranking, k));
      expect("P" + of, precision_at(ranking, k));
      expect("mrr" + of, reciprocal_rank(ranking, k));
    }
    expect("map", average_precision_at(ranking, 1000));
    ++cases;
  }
  EXPECT_EQ(cases, 60);
  EXPECT_GT(relevant, 20);
  EXPECT_LT(relevant, 60);  // queries without relevant documents have 0
}

TEST(Rankings, PutEqualScoresInTheOrderOfDescendingIds) {
  EXPECT_TRUE(ranks_before({"a", 2}, {"b", 1}));
  EXPECT_TRUE(ranks_before({"b", 1}, {"a", 1}));
  EXPECT_FALSE(ranks_before({"a", 1}, {"a", 1}));
  EXPECT_TRUE(ranks_before({"é", 1}, {"z", 1}));  // by bytes, as strcmp
}

TEST(LabelledPairs, HaveTheScoresOfSentenceTransformers) {
  const nlohmann::json all = vector_goldens();
  for (const auto& each : all.at("pairs")) {
    LabelledPairs pairs;
    for (size_t i = 0; i < each["scores"].size(); ++i)
      pairs.emplace_back(each["scores"][i].get<double>(), each["labels"][i] == 1);
    EXPECT_NEAR(average_precision(pairs), each["average_precision"].get<double>(), 1e-14);
    const BestThresholds best = best_thresholds(pairs);
    EXPECT_EQ(best.accuracy, each["accuracy"].get<double>());
    EXPECT_EQ(best.accuracy_threshold, each["accuracy_threshold"].get<double>());
    EXPECT_EQ(best.f1, each["f1"].get<double>());
    EXPECT_EQ(best.f1_threshold, each["f1_threshold"].get<double>());
  }
  EXPECT_EQ(average_precision({{0.5, false}}), 0);
}

TEST(Clusters, HaveTheScoresOfScikitLearn) {
  const nlohmann::json all = vector_goldens();
  for (const auto& each : all.at("clusters")) {
    Choices choices;
    for (size_t i = 0; i < each["labels"].size(); ++i)
      choices.emplace_back(each["labels"][i].get<int32_t>(), each["clusters"][i].get<int32_t>());
    EXPECT_NEAR(v_measure(choices), each["v_measure"].get<double>(), 1e-12) << each;
    EXPECT_NEAR(weighted_f1(counts_of(choices)), each["weighted_f1"].get<double>(), 1e-15) << each;
    EXPECT_EQ(accuracy(choices), each["accuracy"].get<double>());
  }
}

}  // namespace
}  // namespace fovea::infer
