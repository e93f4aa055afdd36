#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>

#include "support/expect_error.h"
#include "support/runs.h"

namespace fovea {
namespace {

namespace fs = std::filesystem;

class ResumedRun : public testing::Test {
 protected:
  ResumedRun() { options_.save_every = 4; }

  void stop_at(int64_t step) const { train::train(small_spec(), options_, {}, stop_after(step)); }
  train::TrainPlan resume() const {
    train::TrainPlan plan;
    const train::TrainResult result =
        train::train(small_spec(), options_, [&](const train::TrainPlan& planned) {
          plan = planned;
          return true;
        });
    EXPECT_EQ(result.step, options_.steps);
    return plan;
  }

  Runs runs_;
  train::TrainOptions options_ = runs_.options("out");
};

// A run with a character tokenizer silently continued with --tokenizer bpe:300: the option was not
// among the compared settings. Settings.IncludeEveryOptionThatAffectsTheResults prevents the same
// error with other options.
TEST_F(ResumedRun, RefusesAnotherTokenizer) {
  stop_at(6);
  options_.tokenizer = "bpe:300";
  expect_error(ErrorKind::InvalidArgument,
               {"tokenizer was \"char\" and is \"bpe:300\"", "`allow_change`"},
               [&] { train::train(small_spec(), options_); });
  options_.tokenizer = "char";
  options_.label_smoothing = 0.1;
  expect_error(ErrorKind::InvalidArgument, {"label_smoothing was"},
               [&] { train::train(small_spec(), options_); });
}

// With --dtype automatic, a run that started in bf16 was refused on a machine without bf16
// instructions, since the precision was chosen again. A resumed run now keeps its precision.
TEST_F(ResumedRun, KeepsTheFirstPrecision) {
  for (const auto& [precision, name] :
       {std::pair(train::Precision::fp32, "fp32"), {train::Precision::bf16, "bf16"}}) {
    options_.out = runs_ / name;
    options_.precision = precision;
    stop_at(6);
    options_.precision = train::Precision::automatic;
    const train::TrainPlan plan = resume();
    EXPECT_EQ(plan.precision, name);
    EXPECT_TRUE(plan.notes.empty());
  }
}

// A run with --position sinusoidal --stored-waves true could not be resumed: the stored sinusoids
// are not trained, so they are not in snapshots, and the run was refused. They now keep their
// initial values.
TEST_F(ResumedRun, RestoresAModelWithStoredSinusoids) {
  model::Spec spec = small_spec();
  spec.decoder->position.kind = model::PositionKind::sinusoidal;
  spec.decoder->position.stored = true;
  options_.average = 2;
  train::train(spec, options_);
  train::TrainOptions stopped = options_;
  stopped.out = runs_ / "stopped";
  train::train(spec, stopped, {}, stop_after(11));
  EXPECT_EQ(train::train(spec, stopped).step, options_.steps);
  EXPECT_EQ(state_bytes(stopped, 20), state_bytes(options_, 20));
  EXPECT_EQ(read_file(stopped.out + "/model.safetensors"),
            read_file(options_.out + "/model.safetensors"));
}

// An untrusted folder with a FIFO named log.jsonl made train wait forever. Only regular files are
// now accepted.
TEST_F(ResumedRun, RefusesALogThatIsNotAFile) {
  stop_at(8);
  const std::string log = options_.out + "/log.jsonl";
  fs::remove(log);
  ASSERT_EQ(mkfifo(log.c_str(), 0600), 0);
  expect_error(ErrorKind::BadFile, {"log.jsonl", "FIFO"}, [&] { resume(); });
}

}  // namespace
}  // namespace fovea
