#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <limits>

#include "kernels/kernels.h"
#include "open/directory.h"
#include "support/expect_error.h"
#include "support/faulty_calls.h"
#include "support/runs.h"

namespace fovea::train {
namespace {

void expect_finite(const SafeTensors& file) {
  for (const StoredTensor& stored : file.stored())
    EXPECT_EQ(count_nonfinite(file.tensor(stored.name)), 0) << stored.name;
}

// Checks the files of a run: intact snapshots with finite numbers, a finite model, no partial
// files.
void expect_good_folder(const std::string& out) {
  for (const int64_t step : model::find_snapshots(out))
    expect_finite(model::load_snapshot(out, step).tensors);
  if (is_file(out + "/model.safetensors")) expect_finite(SafeTensors::open_model(out));
  for (const auto& entry : std::filesystem::directory_iterator(out)) {
    const std::string name = entry.path().filename().string();
    EXPECT_TRUE(name[0] != '.' || name == ".lock") << name;
  }
}

class Guard : public testing::Test {
 protected:
  // Returns a model directory with a weight that is not finite.
  std::string poisoned() const {
    TrainOptions o = runs_.options("poisoned");
    o.steps = 1;
    train(small_spec(), o);
    model::ModelFiles files = model::open_model_files(o.out, model::Weights::owned);
    files.model.each([](const std::string& name, model::Parameter& p) {
      if (name.find("ffn") != name.npos && p.role == model::Role::residual_matrix)
        p.value.data_as<float>()[5] = std::numeric_limits<float>::quiet_NaN();
    });
    model::save_model_files(o.out, files.model, {});
    return o.out;
  }

  Runs runs_;
};

TEST_F(Guard, NamesTheFirstNonFiniteTensorAndStops) {
  TrainOptions o = runs_.options("out");
  o.from = poisoned();
  o.bad_steps = 3;
  std::vector<std::string> warnings;
  expect_error(ErrorKind::Failed, {"step 3", "decoder.0.ffn", "1 of ", "3 such steps in a row"},
               [&] {
                 train({}, o, {}, [&](const TrainProgress& progress) {
                   warnings.push_back(progress.warning);
                   return true;
                 });
               });
  ASSERT_EQ(warnings.size(), 2u);
  EXPECT_NE(warnings[0].find("decoder.0.ffn"), std::string::npos) << warnings[0];
  EXPECT_NE(warnings[0].find("skipped"), std::string::npos) << warnings[0];
  expect_good_folder(o.out);
}

TEST_F(Guard, SavesNoNonFiniteWeights) {
  TrainOptions o = runs_.options("out");
  o.from = poisoned();
  o.save_every = 1;
  expect_error(ErrorKind::Failed, {"step 1", "decoder.0.ffn", "not finite", "nothing is saved"},
               [&] { train({}, o); });
  EXPECT_TRUE(model::find_snapshots(o.out).empty());
  expect_good_folder(o.out);
}

// A model without learned positions may be trained with a shorter context than before.
TEST_F(Guard, StartsFromAModelWithAShorterContext) {
  TrainOptions o = runs_.options("first");
  model::Spec spec = small_spec();
  spec.decoder->position.kind = model::PositionKind::none;
  train(spec, o);
  o.from = o.out;
  o.out = runs_ / "second";
  spec.context = 8;
  TrainPlan plan;
  train(spec, o, [&](const TrainPlan& told) {
    plan = told;
    return true;
  });
  EXPECT_EQ(plan.from, o.from);
  EXPECT_EQ(plan.tokens_per_step, 4 * 8);
  EXPECT_EQ(model::open_model_files(o.out, model::Weights::mapped).model.spec.context, 8);
  expect_good_folder(o.out);
}

// The CPU kernels with a gradient norm that becomes infinite on request.
class BadNorm {
 public:
  BadNorm() {
    now_ = false;
    table_ = cpu_kernels();
    table_.sum_of_squares = [](In x, int64_t size) {
      return now_ ? std::numeric_limits<double>::infinity() : cpu_kernels().sum_of_squares(x, size);
    };
    use_kernels(&table_);
  }
  ~BadNorm() { use_kernels(nullptr); }
  BadNorm(const BadNorm&) = delete;
  BadNorm& operator=(const BadNorm&) = delete;
  void set(bool bad) { now_ = bad; }

 private:
  Kernels table_;
  static inline bool now_ = false;
};

TEST_F(Guard, SkipsANonFiniteStep) {
  TrainOptions o = runs_.options("out");
  o.save_every = 1;
  o.keep = 100;
  BadNorm norm;
  std::vector<int64_t> warned;
  const TrainResult result = train(small_spec(), o, {}, [&](const TrainProgress& progress) {
    if (!progress.warning.empty()) warned.push_back(progress.step);
    norm.set(progress.step % 4 == 0);  // affects the next step
    return true;
  });
  EXPECT_EQ(result.step, 20);
  EXPECT_EQ(warned, (std::vector<int64_t>{5, 9, 13, 17}));
  EXPECT_EQ(state_bytes(o, 4), state_bytes(o, 5));  // no update
  EXPECT_NE(state_bytes(o, 5), state_bytes(o, 6));
  expect_good_folder(o.out);
}

TEST_F(Guard, KeepsTheLastGoodSnapshot) {
  TrainOptions o = runs_.options("out");
  o.save_every = 5;
  BadNorm norm;
  expect_error(ErrorKind::Failed, {"step 10", "the last good snapshot is", "checkpoint-5"}, [&] {
    train(small_spec(), o, {}, [&](const TrainProgress& progress) {
      norm.set(progress.step >= 7);
      return true;
    });
  });
  expect_good_folder(o.out);
  norm.set(false);
  EXPECT_EQ(train(small_spec(), o).step, 20);  // the run continues from the snapshot
}

// In each run, one call to the file system after step 3 fails: every third of these calls,
// including those that save the second snapshot.
TEST_F(Guard, SurvivesAFullDisk) {
  int at = 1;
  for (bool failed = true; failed; at += 3) {
    TrainOptions o = runs_.options("full" + std::to_string(at));
    o.validation = 0;
    o.steps = 4;
    o.save_every = 2;
    {
      std::optional<FaultyCalls> faulty;
      const auto full_from_step_3 = [&](const TrainProgress& progress) {
        if (progress.step == 3) faulty.emplace(at);
        return true;
      };
      try {
        train(small_spec(), o, {}, full_from_step_3);
        failed = false;
      } catch (const Error& error) {
        EXPECT_EQ(static_cast<int>(error.kind()), static_cast<int>(ErrorKind::Failed));
        EXPECT_NE(std::string(error.what()).find(o.out), std::string::npos) << error.what();
        EXPECT_NE(std::string(error.what()).find("No space left"), std::string::npos)
            << error.what();
      }
      // The failure of some calls is harmless, such as those that write the chart.
      if (!failed && faulty->calls() >= at) failed = true;
    }
    expect_good_folder(o.out);
    const auto snapshot = model::load_latest_snapshot(
        o.out, [](const std::string& text) { ADD_FAILURE() << "damaged: " << text; });
    ASSERT_TRUE(snapshot);
    EXPECT_GE(snapshot->step, 2);
    if (at % 4 == 1) {
      EXPECT_EQ(train(small_spec(), o).step, 4);  // the run continues
    }
  }
  EXPECT_GT(at, 50);  // ensures that calls were tested
}

TEST_F(Guard, SurvivesAnExtremeLearningRate) {
  TrainOptions o = runs_.options("out");
  o.learning_rate = 10;
  o.warmup = 0;
  o.clip = 0;
  o.save_every = o.evaluate_every = 1;
  o.keep = 100;
  try {
    EXPECT_EQ(train(small_spec(), o).step, 20);
  } catch (const Error& error) {
    EXPECT_EQ(static_cast<int>(error.kind()), static_cast<int>(ErrorKind::Failed)) << error.what();
  }
  expect_good_folder(o.out);
}

TEST_F(Guard, RefusesAFolderTakenByAnotherRun) {
  TrainOptions o = runs_.options("out");
  expect_error(ErrorKind::Failed, {"out: ", "another run was started"}, [&] {
    train(small_spec(), o, [&](const TrainPlan&) {
      train(small_spec(), o);
      return true;
    });
  });
  EXPECT_EQ(train(small_spec(), o).step, 20);
}

TEST_F(Guard, LeavesNoFilesIfTheInputIsRefused) {
  TrainOptions o = runs_.options("new/deep/out");
  o.token_cache = 0;  // uses a file
  model::Spec spec = small_spec();
  spec.context = 100000;
  expect_error(ErrorKind::InvalidArgument, {"`context`"}, [&] { train(spec, o); });
  EXPECT_FALSE(is_folder(runs_ / "new"));

  write_file_atomically(runs_ / "bad.txt", words(50) + "\xff" + words(50));
  o.data = {runs_ / "bad.txt"};
  expect_error(ErrorKind::BadFile, {"bad.txt:"}, [&] { train(small_spec(), o); });
  EXPECT_FALSE(is_folder(runs_ / "new"));

  o = runs_.options("new/out");
  o.memory_limit = 1000;
  expect_error(ErrorKind::OutOfMemory, {"memory"}, [&] { train(small_spec(), o); });
  o.memory_limit = 0;
  train(small_spec(), o, [](const TrainPlan&) { return false; });
  EXPECT_FALSE(is_folder(runs_ / "new"));
}

}  // namespace
}  // namespace fovea::train
