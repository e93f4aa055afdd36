#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <tuple>

#include "base/files.h"
#include "base/json.h"
#include "lab/experiment.h"
#include "lab/table.h"
#include "support/expect_error.h"

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
  EXPECT_EQ(none.verdict, Verdict::undecided);  // the interval of 3 reaches below 3
  EXPECT_TRUE(none.sentence.starts_with("undecided: against lstm with 64 tokens; did not hold: "))
      << none.sentence;
  EXPECT_EQ(decide(1, 2), Verdict::holds_only_if);  // the GRU takes 4 times as long
}

// A mean accuracy of 0.383 beside 0.358 with intervals that overlap refutes nothing.
TEST(LabRules, OverlappingIntervalsDecideNothing) {
  lab::Table table;
  const std::map<std::string, std::vector<double>> accuracies = {{"mean", {0.397, 0.397, 0.357}},
                                                                 {"first", {0.353, 0.383, 0.337}}};
  for (const auto& [series, values] : accuracies)
    for (const double y : values) table.add(series, 0, 0, y);
  for (const double y : {0.9, 0.91, 0.9}) table.add("word vectors", 0, 0, y);
  table.finish();
  const std::vector<Conclusion> found = lab::experiment_named("pooling").conclude(table);
  EXPECT_EQ(found[0].verdict, Verdict::undecided);
  EXPECT_TRUE(found[0].sentence.starts_with("undecided (")) << found[0].sentence;
  EXPECT_EQ(found[1].verdict, Verdict::held);
  EXPECT_EQ(
      lab::experiment_named("pooling")
          .conclude(table_of({{"mean", 0, 0.3}, {"first", 0, 0.4}, {"word vectors", 0, 1}}))[0]
          .verdict,
      Verdict::did_not_hold);
}

TEST(LabRules, OneValueDecidesNothing) {
  lab::Table table;
  table.add("mean", 0, 0, 0.9);
  table.add("first", 0, 0, 0.1);
  table.finish();
  EXPECT_EQ(lab::above(table.first("mean"), table.first("first")), lab::Outcome::undecided);
  EXPECT_EQ(lab::above(table.first("mean"), 0.5), lab::Outcome::undecided);
}

TEST(LabRules, NumbersOfEachSeedHaveAnInterval) {
  lab::Table table;
  for (const double y : {1.0, 2.0, 4.0}) table.add("a", 1, 0, y), table.add("a", 2, 0, 2 * y);
  table.finish();
  const LabPoint rise = lab::by_seed(
      table, [](const lab::SeedValue& value) { return value("a", 2) - value("a", 1); });
  EXPECT_EQ(rise.values, (std::vector<double>{1, 2, 4}));
  EXPECT_NEAR(rise.high, 6.127917, 1e-3);
}

// Attention: 8 d^2 + 2 (n + 1) d operations per token for d = 64; a GRU: 12 d^2.
TEST(Operations, AreThoseOfTheMatrices) {
  const LabBench bench = LabBench::open("operations", {});
  const auto of = [&](const std::string& arm, double n) {
    return bench.measure({arm, n, 0, 1})[1].y;
  };
  EXPECT_DOUBLE_EQ(of("attention", 16), (8 * 64 * 64 + 2 * 17 * 64) / 1e3);
  EXPECT_DOUBLE_EQ(of("rnn", 16), 4 * 64 * 64 / 1e3);
  EXPECT_DOUBLE_EQ(of("gru", 2048), 12 * 64 * 64 / 1e3);
  EXPECT_DOUBLE_EQ(of("lstm", 16), 16 * 64 * 64 / 1e3);
}

std::string with(const LabFolder& folder, nlohmann::ordered_json result, const std::string& key,
                 const nlohmann::json& value) {
  result[key] = value;
  write_file_atomically(folder / "changed.json", result.dump());
  return folder / "changed.json";
}

// A result is judged by the rule under which its runs were made, or not at all.
TEST(Results, OfAnotherRuleAreVoid) {
  const LabFolder folder;
  const nlohmann::ordered_json stored = read_json("lab/results/pooling.json");
  const LabResult same = judge_result("lab/results/pooling.json");
  EXPECT_EQ(stored["conclusions"][0]["sentence"].get<std::string>(), same.conclusions[0].sentence);
  for (const auto& [key, value] : {std::pair("rule", "each holds if its mean is greater"),
                                   {"rule_hash", "0123456789abcdef"}}) {
    const LabResult other = judge_result(with(folder, stored, key, value));
    ASSERT_EQ(other.conclusions.size(), 2u);
    EXPECT_EQ(other.conclusions[1].verdict, Verdict::voided);
    EXPECT_EQ(other.conclusions[1].sentence, "void: the rule changed");
  }
  const auto refused = [&](const std::string& key, const nlohmann::json& value,
                           const std::string& text) {
    const std::string path = with(folder, stored, key, value);
    expect_error(ErrorKind::BadFile, {"changed.json", text}, [&] { judge_result(path); });
  };
  refused("experiment", "poling", "\"poling\" is not an experiment");
  refused("points", nlohmann::json::array(), "no value of mean");
  refused("points", 3, "no list \"points\"");
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
