// Logistic regression, its cross-validation and TF-IDF give scikit-learn's results
// (tools/goldens/make_probe.py).

#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>
#include <numeric>

#include "base/threads.h"
#include "fovea/core/random.h"
#include "metrics/choices.h"
#include "probing/cross_validation.h"
#include "probing/logistic_regression.h"
#include "probing/probe_data.h"
#include "probing/tfidf.h"

namespace fovea::study {
namespace {

nlohmann::json probe_goldens() {
  std::ifstream file("tests/goldens/probe.json");
  EXPECT_TRUE(file) << "run from the project's root";
  return nlohmann::json::parse(file);
}

std::shared_ptr<const Features> dense_features(const nlohmann::json& data) {
  return std::make_shared<const Features>(data["width"].get<int64_t>(),
                                          data["vectors"].get<std::vector<float>>());
}

ProbeFolds folds_in(const nlohmann::json& data) {
  return {{.classes = data["classes"], .labels = data["labels"]}, data["fold"], data["folds"]};
}

std::vector<int32_t> first_numbers(size_t count) {
  std::vector<int32_t> all(count);
  std::iota(all.begin(), all.end(), 0);
  return all;
}

TEST(LogisticRegression, HasTheWeightsOfScikitLearn) {
  for (const auto& data : probe_goldens()["cases"]) {
    const auto features = dense_features(data);
    const std::vector<int32_t> labels = data["labels"];
    for (const auto& model : data["models"]) {
      const LogisticRegression found = fit_logistic_regression(
          *features, first_numbers(labels.size()), labels, data["classes"], model["c"]);
      EXPECT_TRUE(found.converged);
      std::vector<double> expected;
      for (size_t k = 0; k < model["weights"].size(); ++k) {
        for (const double weight : model["weights"][k]) expected.push_back(weight);
        expected.push_back(model["intercepts"][k]);
      }
      ASSERT_EQ(found.weights.size(), expected.size());
      for (size_t i = 0; i < expected.size(); ++i)
        EXPECT_NEAR(found.weights[i], expected[i], 2e-3) << model["c"] << " " << i;
    }
  }
}

TEST(LogisticRegression, ConvergesIfTheClassesAreSeparable) {
  const Features features(1, {-2, -1, 1, 2, 3});
  const auto model = fit_logistic_regression(features, {0, 1, 2, 3, 4}, {0, 0, 1, 1, 1}, 2, 1e9);
  EXPECT_TRUE(model.converged);
  for (const int32_t row : {0, 1}) EXPECT_EQ(model.predict(features, row), 0);
  for (const int32_t row : {2, 3, 4}) EXPECT_EQ(model.predict(features, row), 1);
}

TEST(LogisticRegression, SparseRowsAreTheSameAsDenseOnes) {
  const Features dense(3, {0, 1, 2, 3, 0, 0, 0, 0, 1});
  Features sparse(3);
  sparse.add_sparse_row(std::vector<Features::Element>{{1, 1}, {2, 2}});
  sparse.add_sparse_row(std::vector<Features::Element>{{0, 3}});
  sparse.add_sparse_row(std::vector<Features::Element>{{2, 1}});
  EXPECT_EQ(sparse.rows(), 3);
  EXPECT_EQ(dense.rows(), 3);
  for (const double c : {0.1, 10.0}) {
    const auto a = fit_logistic_regression(dense, {0, 1, 2}, {0, 1, 2}, 3, c),
               b = fit_logistic_regression(sparse, {0, 1, 2}, {0, 1, 2}, 3, c);
    for (size_t i = 0; i < a.weights.size(); ++i) EXPECT_NEAR(a.weights[i], b.weights[i], 1e-5);
  }
}

TEST(CrossValidation, PredictsAsScikitLearn) {
  for (const auto& data : probe_goldens()["cases"]) {
    const ProbeFolds folds = folds_in(data);
    const auto features = dense_features(data);
    const WordCounts words(data["texts"]);
    for (const auto& model : data["models"]) {
      const std::vector<double> c = {model["c"]};
      const auto vectors = cross_validate([&](const auto&) { return features; }, folds, c, 1);
      EXPECT_EQ(vectors.predicted.labels, model["predicted"].get<std::vector<int32_t>>())
          << model["c"];
      EXPECT_EQ(vectors.unfinished, 0);
      const auto of_words = cross_validate(
          [&](const std::vector<int32_t>& training) {
            return std::make_shared<const Features>(words.features(training, false));
          },
          folds, c, 1);
      EXPECT_EQ(of_words.predicted.labels, model["predicted_words"].get<std::vector<int32_t>>());
      infer::Choices choices;
      for (size_t i = 0; i < folds.fold.size(); ++i)
        choices.emplace_back(folds.targets.labels[i], vectors.predicted.labels[i]);
      EXPECT_NEAR(infer::accuracy(choices), model["accuracy"].get<double>(), 1e-12);
      EXPECT_NEAR(infer::macro_f1(infer::counts_of(choices)), model["f1"].get<double>(), 1e-12);
    }
  }
}

TEST(RidgeRegression, IsThatOfScikitLearn) {
  const auto data = probe_goldens()["cases"][1];
  const auto features = dense_features(data);
  const std::vector<double> numbers = data["numbers"];
  const std::vector<int32_t> all = first_numbers(numbers.size());
  ProbeFolds folds = folds_in(data);
  folds.targets = {.problem = model::ProblemType::regression, .numbers = numbers};
  for (const auto& model : data["ridge"]) {
    const double c = model["c"];
    const RidgeRegression found = fit_ridge_regression(*features, all, numbers, 1 / c);
    EXPECT_TRUE(found.converged);
    for (size_t i = 0; i < found.weights.size(); ++i)
      EXPECT_NEAR(found.weights[i], model["weights"][i].get<double>(), 1e-6) << c;
    EXPECT_NEAR(found.intercept, model["intercept"].get<double>(), 1e-6) << c;
    const auto held_out = cross_validate([&](const auto&) { return features; }, folds, {c}, 1);
    EXPECT_EQ(held_out.unfinished, 0);
    for (size_t i = 0; i < numbers.size(); ++i)
      EXPECT_NEAR(held_out.predicted.numbers[i], model["predicted"][i].get<double>(), 1e-6) << c;
    EXPECT_NEAR(score_of(ProbeMetric::r2, folds.targets, held_out.predicted, all),
                model["r2"].get<double>(), 1e-8);
    EXPECT_NEAR(score_of(ProbeMetric::pearson, folds.targets, held_out.predicted, all),
                model["pearson"].get<double>(), 1e-8);
  }
}

TEST(CrossValidation, PredictsSeveralLabelsAsScikitLearn) {
  const auto data = probe_goldens()["cases"][1];
  const auto features = dense_features(data);
  ProbeFolds folds = folds_in(data);
  folds.targets = {.problem = model::ProblemType::multi_label,
                   .classes = data["set_labels"],
                   .labels = data["sets"]};
  const std::vector<int32_t> all = first_numbers(folds.fold.size());
  for (const auto& model : data["one_vs_rest"]) {
    const std::vector<double> c = {model["c"]};
    const auto found = cross_validate([&](const auto&) { return features; }, folds, c, 1);
    EXPECT_EQ(found.predicted.labels, model["predicted"].get<std::vector<int32_t>>()) << c[0];
    EXPECT_NEAR(score_of(ProbeMetric::accuracy, folds.targets, found.predicted, all),
                model["accuracy"].get<double>(), 1e-12);
    EXPECT_NEAR(score_of(ProbeMetric::f1, folds.targets, found.predicted, all),
                model["f1"].get<double>(), 1e-12);
  }
}

TEST(FittedProbe, NeedsNoClassifierForALabelOfAllTextsOrNone) {
  const Features features(1, {-2, -1, 1, 2});
  const ProbeTargets targets{.problem = model::ProblemType::multi_label,
                             .classes = 3,
                             .labels = {1, 0, 0, 1, 0, 0, 1, 0, 1, 1, 0, 1}};
  const FittedProbe probe(features, {0, 1, 2, 3}, targets, 100);
  EXPECT_TRUE(probe.converged());
  ProbeTargets found = targets;
  std::fill(found.labels.begin(), found.labels.end(), -1);
  for (int64_t row = 0; row < 4; ++row) probe.predict(features, row, found);
  EXPECT_EQ(found.labels, targets.labels);
}

TEST(CrossValidation, IsTheSameForAnyNumberOfThreads) {
  const auto data = probe_goldens()["cases"][1];
  const auto features = dense_features(data);
  const ProbeFolds folds = folds_in(data);
  const auto found = [&](int threads) {
    set_threads(threads);
    return cross_validate([&](const auto&) { return features; }, folds, {0.01, 0.1, 1, 10}, 7);
  };
  const int before = thread_count();
  const CrossValidated one = found(1), three = found(3);
  set_threads(before);
  EXPECT_EQ(one.predicted.labels, three.predicted.labels);
  EXPECT_EQ(one.c, three.c);
}

// The first feature alone tells the label; 40 others are noise, which a large C learns.
TEST(CrossValidation, ChoosesTheValueOfCThatSuitsTheTrainingTexts) {
  std::vector<float> values;
  std::vector<int32_t> labels;
  Random random(3, Stream::sampling);
  constexpr int64_t kWidth = 41;
  for (int i = 0; i < 120; ++i) {
    labels.push_back(i % 2);
    values.push_back((i % 2 == 0 ? -1.0f : 1.0f) + random.normal());
    for (int64_t c = 1; c < kWidth; ++c) values.push_back(random.normal());
  }
  const auto features = std::make_shared<const Features>(kWidth, values);
  const ProbeFolds folds{{.classes = 2, .labels = labels}, stratified_folds(labels, 4, 1), 4};
  const auto right = [&](const std::vector<double>& c) {
    const auto found = cross_validate([&](const auto&) { return features; }, folds, c, 1);
    int64_t count = 0;
    for (size_t i = 0; i < labels.size(); ++i) count += found.predicted.labels[i] == labels[i];
    return count;
  };
  EXPECT_GT(right({1e-2, 1e6}), right({1e6}));
}

TEST(StratifiedFolds, HaveTheSameShareOfEveryLabel) {
  std::vector<int32_t> labels;
  for (int i = 0; i < 101; ++i) labels.push_back(i % 10 == 0 ? 2 : i % 3 == 0 ? 1 : 0);
  const std::vector<int32_t> fold = stratified_folds(labels, 5, 1);
  std::vector<std::vector<int>> counts(5, std::vector<int>(3));
  std::vector<int> sizes(5);
  for (size_t i = 0; i < labels.size(); ++i) {
    ++counts[static_cast<size_t>(fold[i])][static_cast<size_t>(labels[i])];
    ++sizes[static_cast<size_t>(fold[i])];
  }
  for (size_t a = 0; a < 5; ++a) {
    EXPECT_LE(std::abs(sizes[a] - sizes[0]), 1);
    for (size_t label = 0; label < 3; ++label)
      EXPECT_LE(std::abs(counts[a][label] - counts[0][label]), 1);
  }
  EXPECT_NE(fold, stratified_folds(labels, 5, 2));
}

TEST(TfIdf, IsThatOfScikitLearn) {
  const auto rows = probe_goldens()["unusual"];
  std::vector<std::string> texts, names;
  for (const auto& row : rows) {
    texts.push_back(row["text"]);
    EXPECT_EQ(lower_words(texts.back()), row["words"].get<std::vector<std::string>>());
    for (const std::string& word : lower_words(texts.back()))
      if (std::find(names.begin(), names.end(), word) == names.end()) names.push_back(word);
  }
  const Features features = WordCounts(texts).features(first_numbers(texts.size()), false);
  EXPECT_EQ(features.width(), std::ssize(names));
  for (size_t i = 0; i < texts.size(); ++i) {
    for (size_t word = 0; word < names.size(); ++word) {
      std::vector<double> only(names.size());
      only[word] = 1;
      EXPECT_NEAR(features.dot(static_cast<int64_t>(i), only.data()),
                  rows[i]["tfidf"].value(names[word], 0.0), 1e-7);
    }
  }
}

TEST(TfIdf, LeavesOutWordsThatOccurInNoTrainingText) {
  const Features features = WordCounts({"new words", "old words", "old"}).features({1, 2}, false);
  std::vector<double> all(static_cast<size_t>(features.width()), 1.0);
  EXPECT_NEAR(features.dot(0, all.data()), 1, 1e-7);  // "words" alone
}

TEST(PairFeatures, AreDifferencesAndProducts) {
  const Features features = pair_features(std::vector<float>{1, 2, 4, -3}, 2);
  std::vector<double> found;
  for (size_t i = 0; i < 4; ++i) {
    std::vector<double> only(4);
    only[i] = 1;
    found.push_back(features.dot(0, only.data()));
  }
  EXPECT_EQ(found, (std::vector<double>{3, 5, 4, -6}));
  // "both" is in both texts; the other words are in one each.
  const Features words = WordCounts({"left both", "right both"}).features({0}, true);
  EXPECT_EQ(words.width(), 6);
  EXPECT_EQ(words.rows(), 1);
  const double idf = std::log(3.0 / 2) + 1, length = std::sqrt(idf * idf + 1);
  std::vector<double> differences(6, 1.0), products(6);
  std::fill(differences.begin() + 3, differences.end(), 0.0);
  std::fill(products.begin() + 3, products.end(), 1.0);
  EXPECT_NEAR(words.dot(0, differences.data()), 2 * idf / length, 1e-7);
  EXPECT_NEAR(words.dot(0, products.data()), 1 / (length * length), 1e-7);
}

}  // namespace
}  // namespace fovea::study
