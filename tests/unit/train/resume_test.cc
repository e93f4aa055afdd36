#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "base/json.h"
#include "unit/base/expect_error.h"
#include "unit/train/runs.h"

namespace fovea {
namespace {

namespace fs = std::filesystem;

class Resume : public testing::Test {
 protected:
  Resume() {
    options_.save_every = 4;
    options_.evaluate_every = 5;
  }

  void stop_at(int64_t step) const { train(small_spec(), options_, {}, stop_after(step)); }
  TrainPlan go_on() const {
    TrainPlan plan;
    const TrainResult result = train(small_spec(), options_, [&](const TrainPlan& told) {
      plan = told;
      return true;
    });
    EXPECT_EQ(result.step, options_.steps);
    return plan;
  }
  std::string file(int64_t step) const {
    return snapshot_path(options_.out, step) + "/state.safetensors";
  }
  std::string log() const { return options_.out + "/log.jsonl"; }

  // Every step once and in order, the evaluations as well.
  void expect_whole_log() const {
    std::vector<int64_t> steps, evaluations;
    std::ifstream lines(log());
    for (std::string line; std::getline(lines, line);) {
      const nlohmann::json json = parse_json(line, log());
      (json.contains("eval_loss") ? evaluations : steps).push_back(json["step"]);
    }
    std::vector<int64_t> all(static_cast<size_t>(options_.steps));
    for (size_t i = 0; i < all.size(); ++i) all[i] = static_cast<int64_t>(i + 1);
    EXPECT_EQ(steps, all);
    EXPECT_EQ(evaluations, (std::vector<int64_t>{5, 10, 15, 20}));
  }

  Runs runs_;
  TrainOptions options_ = runs_.options("out");
};

TEST_F(Resume, NamesEverySettingThatChanged) {
  stop_at(6);
  TrainOptions other = options_;
  other.batch = 5;
  other.learning_rate = 0.5;
  Spec spec = small_spec();
  spec.decoder->ffn.width = 24;
  expect_error(ErrorKind::InvalidArgument,
               {"--out", "batch was 4 and is 5", "learning_rate was 0.001 and is 0.5", "spec.",
                "was 64 and is 24", "--allow-change"},
               [&] { train(spec, other); });
  write_file_atomically(runs_ / "text.txt", words(601));
  expect_error(ErrorKind::InvalidArgument, {"data was"}, [&] { train(small_spec(), options_); });
}

TEST_F(Resume, CanBeStoppedWhileItReads) {
  const auto stop = [](double) { return false; };
  const TrainResult result = train(small_spec(), options_, {}, {}, stop);
  EXPECT_TRUE(result.interrupted);
  EXPECT_EQ(result.step, 0);
  EXPECT_FALSE(fs::exists(options_.out));
  go_on();
}

TEST_F(Resume, AllowsChangesOnRequest) {
  stop_at(6);
  options_.learning_rate = 1e-4;
  options_.steps = 12;
  options_.allow_change = true;
  EXPECT_EQ(go_on().first_step, 6);
}

TEST_F(Resume, NeedsNoPermissionForWhatDoesNotDecideTheNumbers) {
  stop_at(6);
  options_.save_every = 3;
  options_.keep = 5;
  EXPECT_EQ(go_on().first_step, 6);
}

TEST_F(Resume, FallsBackToTheOlderSnapshot) {
  stop_at(20);
  const std::string last = read_file(file(20));
  for (const bool cut : {true, false}) {
    std::string damaged = last;
    if (cut)
      damaged.resize(damaged.size() - 1);
    else
      damaged[damaged.size() / 2] ^= 4;
    write_file_atomically(file(20), damaged);
    const TrainPlan plan = go_on();
    EXPECT_EQ(plan.first_step, 16);
    EXPECT_NE(plan.from.find("checkpoint-16"), std::string::npos) << plan.from;
    ASSERT_FALSE(plan.notes.empty());
    EXPECT_NE(plan.notes[0].find("checkpoint-20 is left out"), std::string::npos) << plan.notes[0];
    EXPECT_EQ(read_file(file(20)), last);  // made again
    expect_whole_log();
  }
}

TEST_F(Resume, LogsEachStepOnce) {
  stop_at(11);
  fs::remove_all(snapshot_path(options_.out, 11));  // as if killed: steps 9 to 11 are run again
  std::ofstream(log(), std::ios::app) << "{\"step\": 12, \"lo";
  EXPECT_EQ(go_on().first_step, 8);
  expect_whole_log();
}

TEST_F(Resume, KeepsTheNewestSnapshots) {
  options_.save_every = 3;
  options_.keep = 3;
  go_on();
  EXPECT_EQ(find_snapshots(options_.out), (std::vector<int64_t>{20, 18, 15}));
}

// Name, time of change and contents of all there is in a folder, but for who holds it.
std::map<std::string, std::pair<fs::file_time_type, std::string>> contents(
    const std::string& folder) {
  std::map<std::string, std::pair<fs::file_time_type, std::string>> files;
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    const std::string path = entry.path().string();
    if (entry.path().filename() == ".lock") continue;
    files[path] = {entry.last_write_time(), entry.is_regular_file() ? read_file(path) : ""};
  }
  return files;
}

TEST_F(Resume, LeavesAFinishedRunAsItIs) {
  const TrainResult first = train(small_spec(), options_);
  const auto before = contents(options_.out);
  bool stepped = false;
  const TrainResult again = train(small_spec(), options_, {}, [&](const TrainProgress&) {
    stepped = true;
    return true;
  });
  EXPECT_FALSE(stepped);
  EXPECT_EQ(again.step, 20);
  EXPECT_FALSE(again.interrupted);
  EXPECT_DOUBLE_EQ(again.loss, first.loss);
  EXPECT_DOUBLE_EQ(again.best_loss, first.best_loss);
  EXPECT_DOUBLE_EQ(again.bits_per_byte, first.bits_per_byte);
  const auto after = contents(options_.out);
  EXPECT_EQ(after.size(), before.size());
  for (const auto& [path, state] : before)
    EXPECT_TRUE(after.contains(path) && after.at(path) == state) << path;
}

TEST_F(Resume, RefusesAFolderWhoseSnapshotsAreAllDamaged) {
  stop_at(6);
  for (const int64_t step : find_snapshots(options_.out))
    write_file_atomically(file(step), "nothing");
  expect_error(ErrorKind::BadFile, {options_.out, "damaged"}, [&] { go_on(); });
}

}  // namespace
}  // namespace fovea
