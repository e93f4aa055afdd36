#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <tuple>

#include "base/files.h"
#include "base/json.h"
#include "lab/experiment.h"
#include "lab/table.h"

namespace fovea {
namespace {

class LabFolder {
 public:
  LabFolder() {
    path_ = std::filesystem::temp_directory_path() / ("fovea_lab_" + std::to_string(getpid()));
    std::filesystem::remove_all(path_);
    std::filesystem::create_directories(path_);
  }
  ~LabFolder() { std::filesystem::remove_all(path_); }
  std::string operator/(const std::string& name) const { return path_ / name; }

 private:
  std::filesystem::path path_;
};

// A text with enough words and tokens for every experiment.
std::string lab_text(const LabFolder& folder) {
  const std::string path = folder / "text.txt";
  std::ofstream out(path);
  const char* words[] = {"river", "stone", "and", "the", "of", "light", "walks", "under", "a"};
  for (unsigned i = 0, state = 1; i < 6000; ++i) {
    state = state * 1103515245 + 12345;
    out << words[(state >> 16) % std::size(words)] << (i % 12 == 11 ? ".\n" : " ");
  }
  return path;
}

LabOptions tiny(const LabFolder& folder, const lab::Experiment& e, const std::string& text) {
  LabOptions options;
  options.out = folder / e.summary.name;
  if (e.summary.reads_text) options.data = {text};
  options.effort = 0.01;
  return options;
}

// The verdict must follow from the table by the rule, whatever the table is. Every experiment runs
// with a few steps, and the points of its table are complete.
TEST(Experiments, RunInTheirShortFormAndConcludeByTheirRules) {
  const LabFolder folder;
  const std::string text = lab_text(folder);
  for (const lab::Experiment& e : lab::all_experiments()) {
    SCOPED_TRACE(e.summary.name);
    const LabResult result = run_experiment(e.summary.name, tiny(folder, e, text));
    ASSERT_FALSE(result.stopped);
    for (const LabPoint& point : result.points) {
      EXPECT_EQ(point.values.size(), 3u) << point.series << " " << point.x;
      EXPECT_LE(point.low, point.mean);
      EXPECT_GE(point.high, point.mean);
    }
    ASSERT_EQ(result.conclusions.size(), e.summary.claims.size());
    for (size_t i = 0; i < result.conclusions.size(); ++i) {
      const Conclusion& c = result.conclusions[i];
      EXPECT_EQ(c.claim, e.summary.claims[i]);
      EXPECT_TRUE(c.sentence.starts_with(name_of(c.verdict))) << c.sentence;
    }
    const nlohmann::json written = read_json(result.out + "/result.json");
    EXPECT_EQ(written["rule"], e.summary.rule);
    EXPECT_EQ(written["conclusions"][0]["sentence"], result.conclusions[0].sentence);
    EXPECT_TRUE(read_file(result.out + "/chart.svg").find("</svg>") != std::string::npos);
    EXPECT_TRUE(read_file(result.out + "/table.md").find("|---|") != std::string::npos);
  }
}

TEST(Experiments, DoNotRepeatRuns) {
  const LabFolder folder;
  const lab::Experiment& e = lab::experiment_named("score-variance");
  const LabOptions options = tiny(folder, e, "");
  int64_t calls = 0;
  const LabResult stopped =
      run_experiment(e.summary.name, options, [&](const LabProgress&) { return ++calls <= 4; });
  EXPECT_TRUE(stopped.stopped);
  const std::string journal = options.out + "/runs.jsonl", before = read_file(journal);
  EXPECT_EQ(std::count(before.begin(), before.end(), '\n'), 5);  // the settings and four runs
  {
    std::ofstream damaged(journal, std::ios::app);
    damaged << "{\"arm\": \"sca";  // the process was killed while it wrote
  }
  const LabResult whole = run_experiment(e.summary.name, options);
  const std::string after = read_file(journal);
  EXPECT_EQ(after.substr(0, before.size()), before);
  EXPECT_EQ(std::count(after.begin(), after.end(), '\n'), 1 + 2 * 4 * 3);
  LabOptions other = options;
  other.out = folder / "other";
  EXPECT_EQ(run_experiment(e.summary.name, other).points[0].values, whole.points[0].values);
}

TEST(Experiments, RefuseAFolderOfOtherSettings) {
  const LabFolder folder;
  const lab::Experiment& e = lab::experiment_named("score-variance");
  LabOptions options = tiny(folder, e, "");
  run_experiment(e.summary.name, options);
  options.effort = 0.02;
  try {
    run_experiment(e.summary.name, options);
    FAIL();
  } catch (const FieldError& error) {
    EXPECT_EQ(error.field(), "out");
    EXPECT_NE(std::string(error.what()).find("other settings"), std::string::npos) << error.what();
  }
}

TEST(Experiments, NeedTextIfTheyTrainOnText) {
  EXPECT_THROW(run_experiment("residuals", {}), FieldError);
  LabOptions options;
  options.data = {"text.txt"};
  EXPECT_THROW(run_experiment("recall", options), FieldError);
  EXPECT_THROW(run_experiment("recal", {}), FieldError);
}

// scipy.stats.t.interval(0.95, 2, loc=mean, scale=sem) of 1, 2, 4.
TEST(LabTable, IntervalsAreThoseOfStudent) {
  const lab::Estimate e = lab::estimate({1, 2, 4});
  EXPECT_NEAR(e.mean, 2.333333, 1e-6);
  EXPECT_NEAR(e.low, -1.461250, 1e-3);
  EXPECT_NEAR(e.high, 6.127917, 1e-3);
}

// Rules on tables that are made by hand: each outcome can occur.
lab::Table table_of(const std::vector<std::tuple<std::string, double, double>>& points) {
  lab::Table table;
  for (const auto& [series, x, y] : points)
    for (const double noise : {-0.001, 0.0, 0.001}) table.add(series, x, 0, y * (1 + noise));
  table.finish();
  return table;
}

TEST(LabRules, OfSpeedNeedsThreeTimes) {
  const auto decide = [](double rnn, double lstm) {
    return lab::experiment_named("speed")
        .conclude(table_of(
            {{"attention", 64, 1}, {"rnn", 64, rnn}, {"gru", 64, 4}, {"lstm", 64, lstm}}))[0]
        .verdict;
  };
  EXPECT_EQ(decide(3.5, 5), Verdict::held);
  EXPECT_EQ(decide(2.9, 5), Verdict::holds_only_if);
  const Conclusion none = lab::experiment_named("speed").conclude(
      table_of({{"attention", 64, 1}, {"rnn", 64, 1}, {"gru", 64, 2}, {"lstm", 64, 3}}))[0];
  EXPECT_EQ(none.verdict, Verdict::did_not_hold);  // the interval of 3 reaches below 3
}

TEST(LabRules, OfRecallCompareAtDistance48) {
  const auto decide = [](double lstm, double attention) {
    return lab::experiment_named("recall").conclude(
        table_of({{"lstm", 48, lstm}, {"attention", 48, attention}, {"lstm+attention", 48, 1}}));
  };
  EXPECT_EQ(decide(0.1, 1)[0].verdict, Verdict::held);
  EXPECT_EQ(decide(0.1, 1)[1].verdict, Verdict::held);
  EXPECT_EQ(decide(0.99, 1)[0].verdict, Verdict::did_not_hold);
  EXPECT_EQ(decide(0.1, 0.1)[1].verdict, Verdict::did_not_hold);
}

TEST(LabRules, OfExtrapolationAreByLengthAndScheme) {
  const auto rows = [](double sinusoidal, double alibi) {
    std::vector<std::tuple<std::string, double, double>> points;
    for (const auto& [name, loss] : {std::pair("sinusoidal", sinusoidal),
                                     {"alibi", alibi},
                                     {"rotary", 3.0},
                                     {"learned", 4.0}}) {
      points.emplace_back(name, 64, 2);
      points.emplace_back(name, 128, 2);
      points.emplace_back(name, 512, loss);
    }
    return table_of(points);
  };
  const auto found = lab::experiment_named("extrapolation").conclude(rows(3, 2));
  EXPECT_EQ(found[0].verdict, Verdict::holds_only_if);
  EXPECT_NE(found[0].sentence.find("128 tokens"), std::string::npos);
  EXPECT_EQ(found[1].verdict, Verdict::held);
}

}  // namespace
}  // namespace fovea
