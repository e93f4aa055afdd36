// Pooling whose weights are trained with an embedder.

#include "tasks/learned_pooling.h"

#include "base/threads.h"
#include "fovea/infer/embed.h"
#include "support/expect_error.h"
#include "support/golden_folder.h"
#include "support/runs.h"

namespace fovea::train {
namespace {

class LearnedPoolingTest : public testing::Test {
 protected:
  LearnedPoolingTest() {
    nlohmann::json modules = model_.read("modules.json");
    modules.erase(modules.begin() + 2, modules.end());
    model_.write("modules.json", modules);
    model_.write("1_Pooling/config.json", {{"pooling_mode", "mean"}});
    std::string pairs;
    for (const char* word : {"fox", "eye", "light", "bird", "night"})
      pairs += std::string("the ") + word + "\t" + word + " sees\n";
    write_file_atomically(runs_ / "pairs.tsv", pairs);
  }
  EmbedderTraining training(LearnedPooling kind, const std::string& out) const {
    EmbedderTraining t;
    t.model = model_.path();
    t.data = runs_ / "pairs.tsv";
    t.out = runs_ / out;
    t.learn_pooling = kind;
    t.learning_rate = 3e-3;
    t.batch = 3;
    t.epochs = 5;
    return t;
  }
  static std::string weights(const EmbedderTraining& t) {
    const char* const module = t.learn_pooling == LearnedPooling::layers
                                   ? "/1_WeightedLayerPooling/model.safetensors"
                                   : "/1_AttentionPooling/model.safetensors";
    return read_file(t.out + module) + read_file(t.out + "/model.safetensors");
  }

  GoldenFolder model_{"sentence_model"};
  Runs runs_;
};

TEST_F(LearnedPoolingTest, HasTheSameBitsForAnyThreadsAndAfterAResume) {
  for (const LearnedPooling kind : {LearnedPooling::layers, LearnedPooling::tokens}) {
    const std::string name = kind == LearnedPooling::layers ? "layers" : "tokens";
    const EmbedderTraining one = training(kind, name + "1"), three = training(kind, name + "3"),
                           again = training(kind, name + "again");
    const int before = thread_count();
    set_threads(1);
    train_embedder(one);
    set_threads(3);
    train_embedder(three);
    set_threads(before);
    train_embedder(again, {}, stop_after(4));
    train_embedder(again);
    EXPECT_TRUE(weights(one) == weights(three)) << name;
    EXPECT_TRUE(weights(one) == weights(again)) << name;
  }
}

// Equal weights of tokens are those of the mean; equal weights of layers are their mean.
TEST_F(LearnedPoolingTest, BeginsWithEqualWeights) {
  const std::vector<std::string> texts = model_.texts();
  EmbedderTraining t = training(LearnedPooling::tokens, "tokens");
  t.epochs = 1;
  t.learning_rate = 1e-12;
  train_embedder(t);
  const infer::Embeddings before = infer::Embedder::open(model_.path()).embed(texts),
                          after = infer::Embedder::open(t.out).embed(texts);
  for (size_t i = 0; i < before.values.size(); ++i)
    EXPECT_NEAR(before.values[i], after.values[i], 1e-5);
  t.learn_pooling = LearnedPooling::layers;
  t.out = runs_ / "layers";
  train_embedder(t);
  EXPECT_EQ(infer::Embedder::open(t.out).pooling(),
            "mean of the tokens; layers 0 to 2 with weights 0.333 0.333 0.333");
}

TEST_F(LearnedPoolingTest, ContinuesWithTheWeightsOfTheModel) {
  EmbedderTraining t = training(LearnedPooling::layers, "first");
  train_embedder(t);
  const std::string learned = infer::Embedder::open(t.out).pooling();
  EXPECT_EQ(learned.find("0.333 0.333 0.333"), learned.npos);
  EmbedderTraining next = training(LearnedPooling::layers, "next");
  next.model = t.out;
  next.learning_rate = 1e-12;
  train_embedder(next);
  EXPECT_EQ(infer::Embedder::open(next.out).pooling(), learned);
}

TEST_F(LearnedPoolingTest, RefusesDamagedModules) {
  const EmbedderTraining t = training(LearnedPooling::tokens, "out");
  train_embedder(t);
  write_safetensors(t.out + "/1_AttentionPooling/model.safetensors", {{"vector", zeros({3})}});
  expect_error(ErrorKind::BadFile, {"1_AttentionPooling", "vector is [3]; expected [16]"},
               [&] { infer::Embedder::open(t.out); });
}

TEST_F(LearnedPoolingTest, OfAllLayersKeepsThem) {
  EmbedderTraining t = training(LearnedPooling::layers, "again");
  t.recompute = -1;
  expect_error(ErrorKind::InvalidArgument, {"recompute: the vectors are means over all layers"},
               [&] { plan_embedder_training(t); });
}

}  // namespace
}  // namespace fovea::train
