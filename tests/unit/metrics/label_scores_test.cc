// Compares the scores of labels with those of scikit-learn and seqeval
// (tools/goldens/make_labels.py).

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>

#include "metrics/entities.h"
#include "metrics/predictions.h"

namespace fovea::infer {
namespace {

using Json = nlohmann::json;

Json label_goldens() {
  std::ifstream file("tests/goldens/labels.json");
  EXPECT_TRUE(file) << "run from the project's root";
  return Json::parse(file);
}

void expect_value(const char* task, const Predictions& found, const char* metric, double expected) {
  const auto value = value_of(values_of(evaluation_task(task).metrics, found), metric);
  ASSERT_TRUE(value) << metric;
  EXPECT_NEAR(*value, expected, 1e-10) << metric;
}

void expect_scores(const LabelScores& found, const Json& expected) {
  EXPECT_NEAR(found.precision, expected["precision"].get<double>(), 1e-12) << found.name;
  EXPECT_NEAR(found.recall, expected["recall"].get<double>(), 1e-12) << found.name;
  EXPECT_NEAR(found.f1, expected["f1"].get<double>(), 1e-12) << found.name;
  EXPECT_EQ(found.support, expected["support"].get<int64_t>()) << found.name;
}

std::vector<std::string> names_of(size_t count) {
  std::vector<std::string> names;
  for (size_t i = 0; i < count; ++i) names.push_back(std::to_string(i));
  return names;
}

TEST(LabelScores, MatchScikitLearn) {
  for (const Json& golden : label_goldens()["classes"]) {
    Predictions found;
    for (size_t i = 0; i < golden["labels"].size(); ++i)
      found.choices.emplace_back(golden["labels"][i], golden["choices"][i]);
    found.names = names_of(golden["count"]);
    for (const char* metric : {"accuracy", "f1", "f1_micro", "mcc"})
      expect_value("labels", found, metric, golden[metric]);
    const auto report = label_report(found);
    ASSERT_TRUE(report);
    ASSERT_EQ(report->labels.size(), golden["scores"].size());
    for (size_t i = 0; i < report->labels.size(); ++i)
      expect_scores(report->labels[i], golden["scores"][i]);
    EXPECT_EQ(Json(report->confusion), golden["confusion"]);
  }
}

TEST(LabelScores, OfSetsMatchScikitLearn) {
  for (const Json& golden : label_goldens()["sets"]) {
    Predictions found;
    found.sets.width = static_cast<int64_t>(golden["labels"][0].size());
    for (size_t i = 0; i < golden["labels"].size(); ++i) {
      for (size_t j = 0; j < golden["labels"][i].size(); ++j) {
        found.sets.labelled.push_back(golden["labels"][i][j]);
        found.sets.chosen.push_back(golden["choices"][i][j]);
      }
    }
    found.names = names_of(golden["scores"].size());
    for (const char* metric : {"accuracy", "f1", "f1_micro"})
      expect_value("label_sets", found, metric, golden[metric]);
    const auto report = label_report(found);
    ASSERT_TRUE(report);
    for (size_t i = 0; i < report->labels.size(); ++i)
      expect_scores(report->labels[i], golden["scores"][i]);
    EXPECT_TRUE(report->confusion.empty());
  }
}

TEST(LabelScores, OfEntitiesMatchSeqeval) {
  for (const Json& golden : label_goldens()["entities"]) {
    Predictions found;
    const auto number = [&](const Json& tag) {
      const auto at = std::find(found.names.begin(), found.names.end(), tag.get<std::string>());
      if (at == found.names.end()) found.names.push_back(tag);
      return static_cast<int32_t>(
          std::find(found.names.begin(), found.names.end(), tag.get<std::string>()) -
          found.names.begin());
    };
    for (size_t i = 0; i < golden["labels"].size(); ++i) {
      const Json &labels = golden["labels"][i], &choices = golden["choices"][i];
      for (size_t j = 0; j < labels.size(); ++j) {
        const int32_t label = number(labels[j]), choice = number(choices[j]);
        found.choices.emplace_back(label, choice);
      }
      found.ends.push_back(std::ssize(found.choices));
      Json entities = Json::array();
      for (const LabelledEntity& entity : entities_of(labels.get<std::vector<std::string>>()))
        entities.push_back({entity.type, entity.begin, entity.end - 1});
      EXPECT_EQ(golden["found"][i], entities);
    }
    expect_value("words", found, "entity_f1", golden["f1"]);
    expect_value("words", found, "entity_precision", golden["precision"]);
    expect_value("words", found, "entity_recall", golden["recall"]);
    const auto report = label_report(found);
    ASSERT_TRUE(report);
    ASSERT_EQ(report->labels.size(), golden["types"].size());
    for (const LabelScores& type : report->labels) expect_scores(type, golden["types"][type.name]);
  }
}

TEST(LabelScores, OfAnswersMatchTheScriptOfSquad) {
  for (const Json& golden : label_goldens()["answers"]) {
    Predictions found;
    for (size_t i = 0; i < golden["pairs"].size(); ++i) {
      const Json& pair = golden["pairs"][i];
      found.answers.emplace_back(pair[0], pair[1].get<std::vector<std::string>>());
      EXPECT_EQ(normal_answer(pair[0].get<std::string>()), golden["normal"][i].get<std::string>())
          << pair[0];
    }
    for (const char* metric : {"exact", "f1"})
      expect_value("answers", found, metric, golden[metric]);
  }
}

TEST(LabelScores, OfNumbersAreCorrelationsAndTheMeanError) {
  const Predictions found{.numbers = {{1, 2}, {2, 4}, {3, 6}, {4, 9}}};
  expect_value("numbers", found, "pearson", 0.9943767126843688);  // scipy's
  expect_value("numbers", found, "spearman", 1);
  expect_value("numbers", found, "mae", 11.0 / 4);
  EXPECT_FALSE(label_report(found));
}

TEST(LabelScores, NeedEntitiesForEntityScores) {
  EXPECT_TRUE(mark_entities({"O", "B-PER", "S-X"}));
  // The scheme BILOU, which had no scores of entities.
  EXPECT_TRUE(mark_entities({"O", "U-PER", "L-X"}));
  EXPECT_EQ(entities_of({"U-A", "B-B", "L-B", "O"}), entities_of({"S-A", "B-B", "E-B", "O"}));
  EXPECT_FALSE(mark_entities({"O"}));
  EXPECT_FALSE(mark_entities({"O", "NOUN"}));
  Predictions found{.choices = {{0, 0}}, .names = {"NOUN", "O"}, .ends = {1}};
  EXPECT_FALSE(value_of(values_of(evaluation_task("words").metrics, found), "entity_f1"));
}

}  // namespace
}  // namespace fovea::infer
