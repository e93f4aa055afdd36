// Compares evaluations on records with those of lm-evaluation-harness
// (tools/goldens/make_tasks.py).

#include "fovea/evaluate_tasks.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "support/expect_error.h"

namespace fovea {
namespace {

const std::string kGoldens = "tests/goldens/tasks/";

class Tasks : public testing::Test {
 protected:
  Tasks() {
    folder_ = std::filesystem::temp_directory_path() / ("fovea_tasks_" + std::to_string(getpid()));
    std::filesystem::create_directories(folder_);
  }
  ~Tasks() override { std::filesystem::remove_all(folder_); }

  static nlohmann::json expected() {
    std::ifstream file(kGoldens + "expected.json");
    EXPECT_TRUE(file) << "run from the project's root";
    return nlohmann::json::parse(file);
  }
  static const model::Model& model() {
    static const model::Model opened = model::Model::open("tests/goldens/fine_tuning/model");
    return opened;
  }
  std::vector<nlohmann::json> samples(TaskData data, TaskEvaluation& result) const {
    data.samples_out = folder_ / "samples.jsonl";
    result = evaluate_tasks(model(), data);
    std::vector<nlohmann::json> found;
    std::ifstream file(data.samples_out);
    for (std::string line; std::getline(file, line);) found.push_back(nlohmann::json::parse(line));
    return found;
  }
  std::string written(const std::string& text) const {
    std::ofstream(folder_ / "records.jsonl") << text;
    return folder_ / "records.jsonl";
  }

  std::filesystem::path folder_;
};

TEST_F(Tasks, ChoicesHaveTheLogProbabilitiesOfLmEval) {
  const nlohmann::json all = expected();  // must outlive the loop
  for (const auto& golden : all.at("choices")) {
    TaskEvaluation result;
    const auto found =
        samples({.file = kGoldens + "choices.jsonl", .shots = golden["shots"]}, result);
    ASSERT_EQ(found.size(), golden["logprobs"].size());
    for (size_t i = 0; i < found.size(); ++i)
      for (size_t c = 0; c < found[i]["scores"].size(); ++c)
        EXPECT_NEAR(found[i]["scores"][c]["logprob"].get<double>(),
                    golden["logprobs"][i][c].get<double>(), 1e-4)
            << i << " " << c;
    const auto value = [&](const char* name) {
      return infer::value_of(result.metrics, name).value();
    };
    const nlohmann::json& m = golden["metrics"];
    EXPECT_NEAR(value("accuracy"), m["acc"].get<double>(), 1e-12);
    const double a = value("accuracy"), n = static_cast<double>(found.size());
    EXPECT_NEAR(value("accuracy_stderr"), std::sqrt(a * (1 - a) / (n - 1)), 1e-12);
    EXPECT_NEAR(value("accuracy_per_character"), m["acc_norm"].get<double>(), 1e-12);
    EXPECT_NEAR(value("accuracy_per_byte"), m["acc_bytes"].get<double>(), 1e-12);
  }
}

bool is_ascii(const std::string& text) {
  return std::all_of(text.begin(), text.end(), [](char c) { return c > 0; });
}

// Programs replace incomplete characters, which a random model generates, in different ways.
TEST_F(Tasks, GeneratedTextsAreThoseOfLmEval) {
  int64_t compared = 0;
  const nlohmann::json all = expected();  // must outlive the loop
  for (const auto& golden : all.at("generated")) {
    TaskEvaluation result;
    const auto found =
        samples({.file = kGoldens + "generated.jsonl", .shots = golden["shots"]}, result);
    ASSERT_EQ(found.size(), golden["texts"].size());
    for (size_t i = 0; i < found.size(); ++i) {
      const auto text = golden["texts"][i].get<std::string>();
      if (!is_ascii(text)) continue;
      EXPECT_EQ(found[i]["text"], text);
      ++compared;
    }
    EXPECT_NEAR(infer::value_of(result.metrics, "exact_match").value(),
                golden["metrics"]["exact_match"].get<double>(), 1e-12);
  }
  EXPECT_GE(compared, 4);
}

TEST_F(Tasks, AreLimited) {
  int64_t calls = 0;
  const TaskEvaluation result = evaluate_tasks(
      model(), {.file = kGoldens + "choices.jsonl", .limit = 3}, [&](double) { return ++calls; });
  EXPECT_EQ(result.records, 3);
  EXPECT_EQ(result.choices, 3);
  EXPECT_EQ(calls, 3);
}

TEST_F(Tasks, MeasureRouge) {
  const std::string file =
      written("{\"context\": \"the cat\", \"target\": \"the cat\", \"metric\": \"rouge\"}\n");
  TaskEvaluation result;
  const auto found = samples({.file = file}, result);
  for (const char* name : {"rouge_1", "rouge_2", "rouge_l", "rouge_lsum"})
    EXPECT_EQ(infer::value_of(result.metrics, name), found[0][name].get<double>());
  EXPECT_FALSE(infer::value_of(result.metrics, "rouge_1_stderr"));  // one record has no deviation
}

TEST_F(Tasks, RefuseInvalidRecords) {
  const std::pair<const char*, std::string> wrong[] = {
      {"[]", ":1: an array"},
      {R"({"context": "a"})", ":1: expected either \"choices\" and \"gold\", or \"target\""},
      {R"({"context": "a", "choices": ["b", "c"], "gold": 2})", "gold"},
      {R"({"context": "a", "choices": ["b"], "gold": 0})", ":1: one choice; expected at least 2"},
      {R"({"context": "a", "choices": ["b", 3], "gold": 0})", ":1: \"choices\" has 3"},
      {R"({"context": "a", "target": "b", "metric": "f1"})", ":1: \"metric\" is \"f1\""},
      {R"({"context": "a", "target": 3})", "target"}};
  for (const auto& [line, part] : wrong) {
    SCOPED_TRACE(line);
    expect_error(ErrorKind::BadFile, {"records.jsonl:1", part},
                 [&] { evaluate_tasks(model(), {.file = written(line)}); });
  }
  expect_error(ErrorKind::InvalidArgument, {"shots: 12", "at most 11"}, [&] {
    evaluate_tasks(model(), {.file = kGoldens + "generated.jsonl", .shots = 12});
  });
}

}  // namespace
}  // namespace fovea
