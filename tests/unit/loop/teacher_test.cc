#include "loop/teacher.h"
#include "open/directory.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "base/json.h"
#include "data/train_tokenizer.h"
#include "ops/row_loss.h"
#include "start/prepare.h"
#include "support/expect_error.h"
#include "support/runs.h"
#include "support/top_probabilities.h"
#include "tasks/packed_examples.h"
#include "tensor/tape.h"

namespace fovea::train {
namespace {

// A trained teacher and a student that is smaller.
class Distillations : public testing::Test {
 protected:
  Distillations() {
    TrainOptions o = runs_.options("teacher");
    o.learning_rate = 1e-2;
    o.steps = 60;
    train(teacher_spec(), o);
  }
  static model::Spec teacher_spec() {
    model::Spec spec = small_spec();
    spec.width = 24;
    spec.decoder->layers = 2;
    return spec;
  }
  TrainOptions options(const std::string& out) const {
    TrainOptions o = runs_.options(out);
    o.learning_rate = 1e-2;
    o.distillation.teacher = runs_ / "teacher";
    o.distillation.top_k = 4;
    return o;
  }
  // Opens the teacher for the run, with the outputs of `folder`.
  Teacher teacher(const Job& job, const std::string& folder, float temperature = 1) const {
    return Teacher({.path = runs_ / "teacher",
                    .cache = runs_ / folder,
                    .top = 4,
                    .temperature = temperature,
                    .outputs = job.plan.vocabulary},
                   job.plan.spec);
  }
  Job job(const TrainOptions& o) const {
    return prepare(small_spec(), o, true, [](const std::string&) {});
  }
  // Returns the bytes of the outputs in a folder, which are those of one teacher.
  static uint64_t kept_bytes(const std::string& folder) {
    std::vector<uint64_t> sizes;
    for (const std::string& name : list_files(folder))
      if (name.ends_with(".bin")) sizes.push_back(std::filesystem::file_size(folder + "/" + name));
    EXPECT_EQ(sizes.size(), 1u) << folder;
    return sizes.empty() ? 0 : sizes[0];
  }

  Runs runs_;
};

std::string bytes_of(const TopProbabilities& p) {
  std::string bytes(static_cast<const char*>(p.classes.data()), p.classes.bytes());
  return bytes.append(static_cast<const char*>(p.log_p.data()), p.log_p.bytes());
}

TEST_F(Distillations, UseTheLargestProbabilitiesOfTheTeacher) {
  const Job run = job(options("out"));
  const Batch batch = examples_of(run).training(0);
  const model::Transformer model =
      model::open_model_files(runs_ / "teacher", model::Weights::mapped).model;
  const NoGradient off;
  const Tensor logits =
      all_logits(model, batch, {}).view({batch.predictions, model.spec.vocabulary});
  for (const float temperature : {1.0f, 3.0f}) {
    const TopProbabilities found = teacher(run, "none", temperature)(batch);
    const TopProbabilities expected = test::top_probabilities(logits, 4, temperature);
    ASSERT_EQ(found.classes.shape(), expected.classes.shape());
    for (int64_t i = 0; i < found.classes.size(); ++i)
      ASSERT_EQ(found.classes.data_as<int32_t>()[i], expected.classes.data_as<int32_t>()[i]) << i;
    for (int64_t i = 0; i < found.log_p.size(); ++i)
      ASSERT_NEAR(found.log_p.data_as<float>()[i], expected.log_p.data_as<double>()[i], 1e-4) << i;
  }
}

// The loss equals a direct computation from all logits.
TEST_F(Distillations, HaveTheLossOfTheFormula) {
  const Job run = job(options("out"));
  const Batch batch = examples_of(run).training(0);
  const model::Transformer model =
      model::open_model_files(runs_ / "teacher", model::Weights::mapped).model;
  const NoGradient off;
  const int64_t V = model.spec.vocabulary, R = batch.predictions;
  const auto rows_of_model = [&](const model::Transformer& of) {
    return to_floats(all_logits(of, batch, {}));
  };
  const std::vector<float> taught = rows_of_model(model), own = rows_of_model(run.model);
  constexpr float kTemperature = 2;
  constexpr float kShare = 0.7f;
  double expected = 0;
  for (int64_t r = 0; r < R; ++r) {
    const auto row = [&](const std::vector<float>& all, double temperature) {
      return test::softmax_of({all.begin() + r * V, all.begin() + (r + 1) * V}, temperature);
    };
    const std::vector<double> p = row(taught, kTemperature), q = row(own, kTemperature);
    for (size_t v = 0; v < p.size(); ++v)
      expected += kShare * kTemperature * kTemperature * p[v] * std::log(p[v] / q[v]);
    const auto label = static_cast<size_t>(batch.labels.data_as<int32_t>()[r]);
    expected -= (1 - kShare) * std::log(row(own, 1)[label]);
  }
  Teacher all({.path = runs_ / "teacher",
               .cache = runs_ / "none",
               .top = V,
               .temperature = kTemperature,
               .outputs = V},
              run.plan.spec);
  const Distillation distillation{all(batch), kTemperature, kShare};
  const Tensor loss = label_loss(run.model, batch, {}, static_cast<double>(R), 0, &distillation);
  EXPECT_NEAR(number_of(loss), expected / static_cast<double>(R), 1e-5);
}

TEST_F(Distillations, GiveTheSameBitsWithAndWithoutTheCache) {
  TrainOptions o = options("computed");
  const Job run = job(o);
  const Batch batch = examples_of(run).training(0);
  Teacher first = teacher(run, "cache");
  first.keep_outputs();
  const std::string computed = bytes_of(first(batch));
  const std::string found = bytes_of(teacher(run, "cache")(batch));
  EXPECT_EQ(computed, found);
  // A run of several epochs, and one that finds all outputs.
  o.epochs = 3;
  o.distillation.cache = runs_ / "shared";
  train(small_spec(), o);
  const uint64_t written = kept_bytes(o.distillation.cache);
  TrainOptions again = options("found");
  again.epochs = 3;
  again.distillation.cache = runs_ / "shared";
  const TrainResult result = train(small_spec(), again);
  EXPECT_EQ(state_bytes(o, result.step), state_bytes(again, result.step));
  EXPECT_EQ(kept_bytes(o.distillation.cache), written);
}

// The windows of all epochs are the same, so that the teacher reads each once.
TEST_F(Distillations, ComputeEachOutputOnce) {
  TrainOptions o = options("out");
  o.epochs = 1;
  train(small_spec(), o);
  const uint64_t written = kept_bytes(o.out + "/teacher");
  o.epochs = 4;
  o.allow_change = true;
  train(small_spec(), o);
  EXPECT_EQ(kept_bytes(o.out + "/teacher"), written);
}

TEST_F(Distillations, LearnTheTeacher) {
  const auto divergence = [&](const Job& run) {
    const Batch batch = examples_of(run).validation(0);
    const NoGradient off;
    const Tensor logits = all_logits(run.model, batch, {});
    return number_of(kl_divergence(logits, teacher(run, "none")(batch)));
  };
  TrainOptions o = options("out");
  o.steps = 40;
  o.distillation.alpha = 1;
  const double before = divergence(job(o));
  train(small_spec(), o);
  EXPECT_LT(divergence(job(o)), 0.5 * before);  // opens the last snapshot
}

TEST_F(Distillations, GiveTheSameBitsAfterAResume) {
  TrainOptions whole = options("whole"), resumed = options("resumed");
  resumed.save_every = 3;
  train(small_spec(), whole);
  train(small_spec(), resumed, {}, stop_after(5));
  train(small_spec(), resumed);
  EXPECT_EQ(state_bytes(whole, 20), state_bytes(resumed, 20));
  resumed.distillation.alpha = 0.2;
  expect_error(ErrorKind::InvalidArgument, {"distillation_alpha was 0.5 and is 0.2"},
               [&] { train(small_spec(), resumed); });
  resumed.distillation = {};
  expect_error(ErrorKind::InvalidArgument, {"teacher was"}, [&] { train(small_spec(), resumed); });
}

TEST_F(Distillations, GiveTheSameBitsForAnySplitOfAStep) {
  TrainOptions whole = options("whole"), split = options("split");
  split.batch = 1;
  split.accumulate = 4;
  EXPECT_EQ(train(small_spec(), whole).loss, train(small_spec(), split).loss);
  EXPECT_EQ(state_bytes(whole, 20), state_bytes(split, 20));
}

// Tokens are masked anew in each epoch, so their outputs are not kept.
TEST_F(Distillations, OfMaskedTokensKeepNoOutputs) {
  TrainOptions o = runs_.options("encoder");
  o.tokenizer = "wordpiece:60";
  o.length = 16;
  train(small_encoder(), o);
  TrainOptions student = options("masked");
  student.distillation.teacher = o.out;
  student.length = 16;
  model::Spec narrow = small_encoder();
  narrow.width = 16;
  EXPECT_EQ(train(narrow, student).step, 20);
  EXPECT_FALSE(is_folder(student.out + "/teacher"));
}

TEST_F(Distillations, RefuseTeachersThatDoNotFit) {
  write_file_atomically(runs_ / "other.txt", "zyx " + words(600));
  TrainOptions o = options("other");
  o.data = {runs_ / "other.txt"};
  o.distillation = {};
  train(small_spec(), o);
  TrainOptions student = options("out");
  student.from = runs_ / "other";
  expect_error(ErrorKind::InvalidArgument, {"teacher: its tokenizer differs: token ", "expected"},
               [&] { job(student); });
  student = options("out");
  model::Spec longer = small_spec();
  longer.context = 32;
  expect_error(ErrorKind::InvalidArgument,
               {"length: sequences of up to 32 tokens; expected at most 16"},
               [&] { train(longer, student); });
  student.distillation.teacher.clear();
  expect_error(ErrorKind::InvalidArgument,
               {"teacher_top_k: has no effect in this run; expected `teacher`"},
               [&] { train(small_spec(), student); });
  EXPECT_FALSE(is_folder(student.out));
}

}  // namespace
}  // namespace fovea::train
