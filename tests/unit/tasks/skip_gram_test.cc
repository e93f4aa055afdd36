// Word vectors: the loss, what they learn, and the files.

#include <gtest/gtest.h>

#include <cmath>

#include "base/threads.h"
#include "families/static_embedding.h"
#include "fovea/infer/embed.h"
#include "losses/skip_gram_loss.h"
#include "support/expect_error.h"
#include "support/gradient_check.h"
#include "support/runs.h"

namespace fovea::train {
namespace {

Tensor numbers(const std::vector<int32_t>& values, Shape shape) {
  const Tensor x = empty(std::move(shape), DType::i32);
  std::copy(values.begin(), values.end(), x.data_as<int32_t>());
  return x;
}

TEST(SkipGramLoss, MatchesItsDefinitionAndHasItsGradients) {
  const Tensor u = test::normal({5, 3}, 1), v = test::normal({5, 3}, 2);
  const Tensor tokens = numbers({1, 4}, {2}), others = numbers({0, 2, 3, 2, 1, 1}, {2, 3});
  double sum = 0;
  for (int64_t n = 0; n < 2; ++n) {
    for (int64_t k = 0; k < 3; ++k) {
      double z = 0;
      for (int64_t c = 0; c < 3; ++c)
        z += test::at(u, tokens.data_as<int32_t>()[n] * 3 + c) *
             test::at(v, others.data_as<int32_t>()[n * 3 + k] * 3 + c);
      sum += std::log(1 + std::exp(k == 0 ? -z : z));
    }
  }
  EXPECT_NEAR(skip_gram_loss(u, v, tokens, others, 7).data_as<double>()[0], sum / 7, 1e-12);
  test::check_gradients({u, v}, [&](const std::vector<Tensor>& x) {
    return skip_gram_loss(x[0], x[1], tokens, others, 7);
  });
}

// Texts of two topics, whose words never occur together.
class WordVectors : public testing::Test {
 protected:
  WordVectors() {
    const char* const topics[2][4] = {{"fox", "bird", "wolf", "deer"},
                                      {"bread", "soup", "rice", "cake"}};
    std::string text;
    for (uint64_t line = 0; line < 300; ++line) {
      const auto topic = philox(3, Stream::shuffle, 40, line)[0] % 2;
      for (uint64_t i = 0; i < 8; ++i)
        text += std::string(topics[topic][philox(4, Stream::shuffle, 41, 8 * line + i)[0] % 4]) +
                (i == 7 ? "\n" : " ");
    }
    write_file_atomically(runs_ / "topics.txt", text);
  }
  TrainOptions options(const std::string& out) const {
    TrainOptions o = runs_.options(out);
    o.data = {runs_ / "topics.txt"};
    o.objective = Objective::skip_gram;
    o.tokenizer = "wordpiece:60";
    o.learning_rate = 0.02;
    o.weight_decay = 0;
    o.subsampling = 0;
    o.neighbours = 2;
    o.steps = 150;
    o.batch = 8;
    return o;
  }

  Runs runs_;
};

TEST_F(WordVectors, AreSimilarForWordsOfOneTopic) {
  const TrainOptions o = options("out");
  const TrainResult result = train(small_spec(), o);
  // Untrained vectors have a loss of 6 log 2.
  EXPECT_LT(result.best_loss, 6 * std::log(2.0) - 0.5);
  const infer::Embedder embedder = infer::Embedder::open(o.out);
  EXPECT_TRUE(embedder.warnings().empty());
  EXPECT_EQ(embedder.width(), 16);
  const std::vector<std::string> words = {"fox", "wolf", "deer", "soup", "rice"};
  const infer::Embeddings found = embedder.embed(words);
  const auto similarity = [&](int64_t a, int64_t b) {
    return embedder.similarity(found.view().row<float>(a), found.view().row<float>(b));
  };
  for (const int64_t same : {1, 2})
    for (const int64_t other : {3, 4}) EXPECT_GT(similarity(0, same), similarity(0, other) + 0.3);
}

TEST_F(WordVectors, AreMeansWithoutSpecialTokens) {
  TrainOptions o = options("out");
  o.steps = 2;
  train(small_spec(), o);
  const infer::Embedder embedder = infer::Embedder::open(o.out);
  const infer::Embeddings found = embedder.embed({"fox", "soup", "fox soup", ""});
  EXPECT_EQ(found.tokens, (std::vector<int64_t>{1, 1, 2, 0}));
  for (int64_t c = 0; c < 16; ++c) {
    const auto at = [&](int64_t row) {
      return found.view().row<float>(row)[static_cast<size_t>(c)];
    };
    EXPECT_NEAR(at(2), (at(0) + at(1)) / 2, 1e-6);
    EXPECT_EQ(at(3), 0);
  }
}

TEST_F(WordVectors, HaveTheSameBitsForAnyThreadsAndAfterAResume) {
  const auto file = [&](const TrainOptions& o) {
    return read_file(o.out + "/0_StaticEmbedding/model.safetensors");
  };
  TrainOptions one = options("one"), three = options("three"), again = options("again");
  for (TrainOptions* o : {&one, &three, &again}) o->steps = 12, o->accumulate = 2;
  const int before = thread_count();
  set_threads(1);
  train(small_spec(), one);
  set_threads(3);
  train(small_spec(), three);
  set_threads(before);
  train(small_spec(), again, {}, stop_after(5));
  train(small_spec(), again);
  EXPECT_TRUE(file(one) == file(three));
  EXPECT_TRUE(file(one) == file(again));
}

TEST_F(WordVectors, RefuseAnInitialModel) {
  TrainOptions o = options("out");
  o.from = "tests/goldens/sentence_model";
  o.tokenizer = TrainOptions().tokenizer;  // that of the model
  expect_error(ErrorKind::InvalidArgument, {"from: given with skip_gram"}, [&] { train({}, o); });
}

TEST(StaticEmbedding, RefusesDamagedTables) {
  const TemporaryFolder folder;
  write_safetensors(folder / "model.safetensors", {{"other", zeros({2, 3})}});
  expect_error(ErrorKind::BadFile, {"embedding.weight is missing; expected [vocabulary, width]"},
               [&] { model::open_static(folder.path()); });
  write_safetensors(folder / "model.safetensors", {{"embedding.weight", zeros({6})}});
  expect_error(ErrorKind::BadFile, {"embedding.weight is [6]"},
               [&] { model::open_static(folder.path()); });
  write_safetensors(folder / "model.safetensors",
                    {{"embeddings", zeros({2, 3})}, {"mapping", zeros({4}, DType::i32)}});
  expect_error(ErrorKind::Unsupported, {"has mapping"}, [&] { model::open_static(folder.path()); });
}

}  // namespace
}  // namespace fovea::train
