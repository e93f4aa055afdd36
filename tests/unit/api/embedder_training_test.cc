#include "fovea/train/train_embedder.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "base/hash.h"
#include "base/json.h"
#include "fovea/infer/embed.h"
#include "safetensors/safetensors.h"
#include "support/expect_error.h"
#include "support/runs.h"

namespace fovea {
namespace {

constexpr const char* kSubjects[] = {"fox", "eye", "light", "bird", "night", "day"};

// Trains the golden embedder for a few steps.
class EmbedderTrainingTest : public testing::Test {
 protected:
  EmbedderTrainingTest() {
    std::string pairs, triplets, scored = "sentence1,sentence2,score\n";
    for (const std::string word : kSubjects) {
      pairs += "the " + word + "\t" + word + " sees ?\n";
      triplets += R"({"anchor": "the )" + word + R"(", "positive": "a )" + word +
                  R"(", "negative": "never )" + word + "\"}\n";
      for (const std::string other : kSubjects)
        scored += "the " + word + ",a " + other + (word == other ? ",5\n" : ",0\n");
    }
    write_file_atomically(folder_ / "pairs.tsv", pairs);
    write_file_atomically(folder_ / "triplets.jsonl", triplets);
    write_file_atomically(folder_ / "scored.csv", scored);
  }

  train::EmbedderTraining training(const std::string& data, const std::string& out) const {
    train::EmbedderTraining t;
    t.model = "tests/goldens/sentence_model";
    t.data = folder_ / data;
    t.out = folder_ / out;
    t.learning_rate = 3e-3;
    t.batch = 4;
    t.epochs = 5;
    return t;
  }
  std::string weights(const train::EmbedderTraining& t) const {
    return read_file(t.out + "/model.safetensors");
  }
  std::string hash_of_weights(const train::EmbedderTraining& t) const {
    train::train_embedder(t);
    return hash_text(hash_bytes(weights(t)));
  }

  TemporaryFolder folder_;
};

TEST_F(EmbedderTrainingTest, HasKnownBits) {
  train::EmbedderTraining t = training("pairs.tsv", "pairs");
  EXPECT_EQ(hash_of_weights(t), "c3c8f09498100311");
  t = training("triplets.jsonl", "triplets");
  t.dimensions = {4, 2};
  EXPECT_EQ(hash_of_weights(t), "5796cc2f7aa26f3d");
  t = training("scored.csv", "scored");
  t.validation = t.data;
  t.batch = 6;
  t.epochs = 3;
  EXPECT_EQ(hash_of_weights(t), "ad35d896a32e6786");  // the best evaluation, not the last one
}

TEST_F(EmbedderTrainingTest, TrainsAdapters) {
  train::EmbedderTraining t = training("pairs.tsv", "adapter");
  t.lora.rank = 2;
  EXPECT_LT(train::plan_embedder_training(t).trained_parameters,
            train::plan_embedder_training(t).parameters);
  train::train_embedder(t);
  EXPECT_FALSE(std::filesystem::exists(t.out + "/model.safetensors"));
  EXPECT_TRUE(std::filesystem::exists(t.out + "/modules.json"));
  const std::vector<std::string> texts = {"the fox", "a bird"};
  const auto vectors = [&](const infer::Embedder& embedder) {
    return embedder.embed(texts).values;
  };
  const std::vector<float> before = vectors(infer::Embedder::open(t.model)),
                           after = vectors(infer::Embedder::open(t.out)),
                           added = vectors(infer::Embedder::open(
                               t.model, model::WeightPrecision::stored, {{t.out}}));
  EXPECT_NE(after, before);
  EXPECT_EQ(after, added);
}

TEST_F(EmbedderTrainingTest, ComputesLayersAgainWithTheSameBits) {
  train::EmbedderTraining t = training("pairs.tsv", "kept");
  const std::string expected = hash_of_weights(t);
  t.out = folder_ / "again";
  t.recompute = -1;
  EXPECT_EQ(hash_of_weights(t), expected);
}

TEST_F(EmbedderTrainingTest, PacksMomentsAndFreezesParameters) {
  train::EmbedderTraining t = training("pairs.tsv", "packed");
  const train::TrainPlan before = train::plan_embedder_training(t);
  t.moments = train::MomentPrecision::bits8;
  t.freeze = {"embedding.*", "0"};
  const train::TrainPlan plan = train::plan_embedder_training(t);
  EXPECT_LT(plan.trained_parameters, before.trained_parameters);
  EXPECT_LT(plan.optimizer_bytes, before.optimizer_bytes / 3);
  train::train_embedder(t);
  const SafeTensors first(t.model + "/model.safetensors"), trained(t.out + "/model.safetensors");
  size_t same = 0;
  for (const StoredTensor& each : trained.stored())
    same += to_floats(first.tensor(each.name)) == to_floats(trained.tensor(each.name));
  EXPECT_GT(same, 0);
  EXPECT_LT(same, trained.stored().size());
  t.lora.rank = 2;
  expect_error(ErrorKind::InvalidArgument, {"freeze: given with `lora`"},
               [&] { train::plan_embedder_training(t); });
}

TEST_F(EmbedderTrainingTest, ResumesWithTheSameBits) {
  train::EmbedderTraining whole = training("scored.csv", "whole");
  whole.validation = whole.data;
  whole.evaluate_every = 4;
  const train::TrainResult expected = train::train_embedder(whole);
  train::EmbedderTraining stopped = whole;
  stopped.out = folder_ / "stopped";
  EXPECT_TRUE(train::train_embedder(stopped, {}, stop_after(7)).interrupted);
  train::TrainPlan plan;
  const train::TrainResult found =
      train::train_embedder(stopped, [&](const train::TrainPlan& given) {
        plan = given;
        return true;
      });
  EXPECT_EQ(plan.first_step, 7);
  EXPECT_EQ(found.step, expected.step);
  EXPECT_EQ(found.start_metrics, expected.start_metrics);
  EXPECT_EQ(found.metrics, expected.metrics);
  EXPECT_EQ(weights(stopped), weights(whole));
  const std::string state = "/checkpoint-" + std::to_string(expected.step) + "/state.safetensors";
  EXPECT_EQ(read_file(stopped.out + state), read_file(whole.out + state));
  stopped.seed = 2;
  expect_error(ErrorKind::InvalidArgument, {"seed was 1337 and is 2", "`allow_change`"},
               [&] { train::train_embedder(stopped); });
}

// At this learning rate, the metric soon stops improving.
TEST_F(EmbedderTrainingTest, StopsEarlyWithTheBestWeights) {
  train::EmbedderTraining t = training("scored.csv", "out");
  t.validation = t.data;
  t.batch = 6;
  t.evaluate_every = 1;
  t.patience = 3;
  t.learning_rate = 0.5;
  const train::TrainResult result = train::train_embedder(t);
  EXPECT_TRUE(result.stopped_early);
  EXPECT_LT(result.step, 30);
  EXPECT_GE(result.metrics.at(0).second, result.start_metrics.at(0).second);
  const train::TrainResult again = train::train_embedder(t);
  EXPECT_TRUE(again.stopped_early);
  EXPECT_EQ(again.step, result.step);
}

TEST_F(EmbedderTrainingTest, PlansWithoutWriting) {
  const train::EmbedderTraining t = training("triplets.jsonl", "out");
  const train::TrainPlan plan = train::plan_embedder_training(t);
  EXPECT_EQ(plan.steps, 10);
  EXPECT_EQ(plan.training_sequences, 6);
  EXPECT_EQ(plan.objective, train::Objective::embedding);
  EXPECT_GT(plan.tokens_per_step, 0);
  EXPECT_GT(plan.flops_per_step, 0);
  EXPECT_FALSE(std::filesystem::exists(t.out));
}

}  // namespace
}  // namespace fovea
