// The training of sparse encoders, late interaction models and cross-encoders, compared with
// sentence-transformers (tools/goldens/make_retriever_losses.py).

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <map>

#include "base/files.h"
#include "base/hash.h"
#include "base/json.h"
#include "fovea/infer/embed.h"
#include "fovea/infer/retrieval.h"
#include "fovea/train/train_embedder.h"
#include "safetensors/safetensors.h"
#include "support/expect_error.h"
#include "support/golden_folder.h"
#include "support/runs.h"
#include "support/temporary_folder.h"

namespace fovea::train {
namespace {

using infer::TextRole;

const std::string kGoldens = "tests/goldens/";
const std::vector<std::string> kTexts = {"the fox sees the bird", "night ?"};

constexpr const char* kLosses[] = {"automatic", "ranking",    "cosine", "cosent", "angle",
                                   "triplet",   "margin_mse", "kl",     "gist",   "scaled_kl",
                                   "mse",       "list_net",   "lambda"};
constexpr const char* kKinds[] = {"automatic", "dense", "sparse", "tokens", "scores"};
const std::map<std::string, std::string> kModels = {
    {"sparse", "sparse_model"}, {"tokens", "multi_vector_model"}, {"scores", "cross_encoder"}};

template <class Enum, size_t N>
Enum named(const char* const (&names)[N], const std::string& name) {
  return static_cast<Enum>(std::find(names, names + N, name) - names);
}

class RetrieverTraining : public testing::Test {
 protected:
  EmbedderTraining training(const std::string& kind, const std::string& file,
                            const std::string& loss, const std::string& out = "out") const {
    EmbedderTraining t;
    t.model = kGoldens + kModels.at(kind);
    t.data = kGoldens + "retriever_losses/" + file + ".jsonl";
    t.out = folder_ / out;
    t.loss = named<EmbeddingLoss>(kLosses, loss);
    t.learning_rate = 3e-3;
    t.batch = 4;
    t.epochs = 3;
    t.save_every = 0;
    return t;
  }
  // Returns the losses of the first and the last step.
  static std::pair<double, double> losses(const EmbedderTraining& t) {
    double first = 0, last = 0;
    train_embedder(t, {}, [&](const TrainProgress& now) {
      if (now.step == 1) first = now.loss;
      last = now.loss;
      return true;
    });
    return {first, last};
  }
  std::string hash_of_weights(const EmbedderTraining& t) const {
    train_embedder(t);
    std::string bytes = read_file(t.out + "/model.safetensors");
    if (is_file(t.out + "/1_Dense/model.safetensors"))
      bytes += read_file(t.out + "/1_Dense/model.safetensors");
    return hash_text(hash_bytes(bytes));
  }
  void refuse(const EmbedderTraining& t, std::initializer_list<std::string> parts,
              ErrorKind kind = ErrorKind::InvalidArgument) const {
    expect_error(kind, parts, [&] { plan_embedder_training(t); });
  }

  TemporaryFolder folder_;
};

// The weight of the regulariser rises to its full value in the second step, and the rate is so low
// that the first one changes no loss.
TEST_F(RetrieverTraining, HasTheLossesOfSentenceTransformers) {
  int64_t number = 0;
  for (const nlohmann::json& each : read_json(kGoldens + "retriever_losses/expected.json")) {
    const std::string file = each["file"];
    SCOPED_TRACE(each.dump());
    EmbedderTraining t = training(each["kind"], file.substr(0, file.find('.')), each["loss"]);
    t.out = folder_ / std::to_string(number++);
    t.temperature = each.value("temperature", 0.0);
    if (each["kind"] == "sparse") {
      t.query_weight = each.value("query_weight", 0.0);
      t.document_weight = each.value("document_weight", 0.0);
    }
    if (each.contains("regulariser")) t.regulariser = Regulariser::l1;
    t.learning_rate = 1e-12;
    t.warmup = 0;
    t.batch = 64;
    t.epochs = 2;
    double loss = 0, gradient = 0;
    train_embedder(t, {}, [&](const TrainProgress& now) {
      loss = now.loss;
      gradient = now.gradient_norm;
      return true;
    });
    const double value = each["value"], length = each["gradient"];
    EXPECT_NEAR(loss, value, 1e-5 * std::max(1.0, value)) << each;
    EXPECT_NEAR(gradient, length, 1e-4 * std::max(1.0, length)) << each;
  }
  EXPECT_EQ(number, 23);
}

TEST_F(RetrieverTraining, LearnsAndSavesSparseEncoders) {
  const EmbedderTraining t = training("sparse", "pairs", "automatic");
  const auto [first, last] = losses(t);
  EXPECT_LT(last, first);
  const auto before = infer::SparseEmbedder::open(t.model),
             after = infer::SparseEmbedder::open(t.out);
  EXPECT_EQ(after.prompts(), before.prompts());
  EXPECT_NE(after.embed(kTexts).values, before.embed(kTexts).values);
}

// A masked language model without modules gets the files of a sparse encoder.
TEST_F(RetrieverTraining, MakesASparseEncoderOfAMaskedLanguageModel) {
  EmbedderTraining t = training("sparse", "tuples", "kl");
  t.model = folder_ / "plain";
  std::filesystem::copy(kGoldens + "sparse_model", t.model);  // its files, not those of its modules
  std::filesystem::remove(t.model + "/modules.json");
  t.kind = TrainedKind::sparse;
  t.query_weight = t.document_weight = 0.01;
  losses(t);
  const auto found = infer::SparseEmbedder::open(t.out);
  EXPECT_EQ(found.width(), 25);
  EXPECT_GT(found.embed(kTexts).values.size(), 0);
  const nlohmann::json modules = read_json(t.out + "/modules.json");
  EXPECT_EQ(modules[1]["path"], "1_SpladePooling");
}

TEST_F(RetrieverTraining, RegularisesMoreWithMoreWeight) {
  const auto active = [&](double weight, const std::string& out) {
    EmbedderTraining t = training("sparse", "pairs", "ranking", out);
    t.query_weight = t.document_weight = weight;
    t.epochs = 20;
    train_embedder(t);
    return infer::SparseEmbedder::open(t.out).embed(kTexts).values.size();
  };
  EXPECT_LT(active(10, "much"), active(0, "none"));
}

TEST_F(RetrieverTraining, LearnsAndSavesLateInteractionModels) {
  const EmbedderTraining t = training("tokens", "tuples", "margin_mse");
  const auto [first, last] = losses(t);
  EXPECT_LT(last, first);
  const auto before = infer::MultiVectorEmbedder::open(t.model),
             after = infer::MultiVectorEmbedder::open(t.out);
  EXPECT_EQ(after.prompts(), before.prompts());
  EXPECT_EQ(after.max_tokens(TextRole::query), before.max_tokens(TextRole::query));
  EXPECT_NE(after.embed(kTexts).values, before.embed(kTexts).values);
  EXPECT_NE(read_file(t.out + "/1_Dense/model.safetensors"),
            read_file(t.model + "/1_Dense/model.safetensors"));
  EXPECT_EQ(read_file(t.out + "/2_MultiVectorMask/config.json"),
            read_file(t.model + "/2_MultiVectorMask/config.json"));
}

// An encoder gets a projection and the files of PyLate; the directory can be trained further.
TEST_F(RetrieverTraining, MakesALateInteractionModelOfAnEncoder) {
  EmbedderTraining t = training("tokens", "pairs", "ranking");
  t.model = kGoldens + "sentence_model";
  t.kind = TrainedKind::tokens;
  t.token_width = 6;
  t.epochs = 20;
  const auto [first, last] = losses(t);
  EXPECT_LT(last, first);
  const auto found = infer::MultiVectorEmbedder::open(t.out);
  EXPECT_EQ(found.width(), 6);
  EXPECT_EQ(found.embed(kTexts, TextRole::query).starts.back(),
            2 * found.max_tokens(TextRole::query));
  EmbedderTraining further = t;
  further.model = t.out;
  further.kind = TrainedKind::automatic;
  further.token_width = EmbedderTraining().token_width;
  further.out = folder_ / "further";
  losses(further);
  EXPECT_EQ(infer::MultiVectorEmbedder::open(further.out).width(), 6);
}

// A directory of the original ColBERT becomes one of PyLate.
TEST_F(RetrieverTraining, TrainsTheOriginalColbert) {
  EmbedderTraining t = training("tokens", "pairs", "ranking");
  const GoldenFolder original("multi_vector_model");
  std::map<std::string, Tensor> tensors;
  const SafeTensors file(original / "model.safetensors");
  for (const StoredTensor& stored : file.stored())
    tensors["bert." + stored.name] = copy(file.tensor(stored.name));
  const SafeTensors dense(original / "1_Dense/model.safetensors");
  tensors["linear.weight"] = copy(dense.tensor("linear.weight"));
  write_safetensors(original / "model.safetensors", tensors);
  for (const char* name :
       {"modules.json", "config_sentence_transformers.json", "sentence_bert_config.json"})
    std::filesystem::remove(original / name);
  original.set("config.json", "architectures", {"HF_ColBERT"});
  original.write("artifact.metadata", {{"query_maxlen", 10}, {"doc_maxlen", 12}});
  t.model = original.path();
  t.learning_rate = 1e-12;
  losses(t);
  const auto before = infer::MultiVectorEmbedder::open(t.model),
             after = infer::MultiVectorEmbedder::open(t.out);
  for (const TextRole role : {TextRole::query, TextRole::document}) {
    const infer::MultiVectors a = before.embed(kTexts, role), b = after.embed(kTexts, role);
    ASSERT_EQ(a.starts, b.starts);
    for (size_t i = 0; i < a.values.size(); ++i) EXPECT_NEAR(a.values[i], b.values[i], 1e-6) << i;
  }
}

TEST_F(RetrieverTraining, LearnsAndSavesCrossEncoders) {
  EmbedderTraining t = training("scores", "tuples", "list_net");
  t.epochs = 30;
  const auto [first, last] = losses(t);
  EXPECT_LT(last, first);
  EXPECT_NE(infer::Reranker::open(t.out).score("the fox", kTexts),
            infer::Reranker::open(t.model).score("the fox", kTexts));
}

TEST_F(RetrieverTraining, MakesACrossEncoderOfAnEncoder) {
  EmbedderTraining t = training("scores", "pairs", "ranking");
  t.model = kGoldens + "sentence_model";
  t.kind = TrainedKind::scores;
  losses(t);
  EXPECT_EQ(infer::Reranker::open(t.out).score("the fox", kTexts).size(), 2);
  EXPECT_FALSE(is_file(t.out + "/modules.json"));
}

TEST_F(RetrieverTraining, TrainsAdapters) {
  for (const auto& [kind, loss] :
       {std::pair("sparse", "ranking"), {"tokens", "kl"}, {"scores", "lambda"}}) {
    SCOPED_TRACE(kind);
    EmbedderTraining t = training(kind, "tuples", loss, kind);
    t.lora.rank = 2;
    const TrainPlan plan = plan_embedder_training(t);
    EXPECT_LT(plan.trained_parameters, plan.parameters);
    train_embedder(t);
    EXPECT_FALSE(is_file(t.out + "/model.safetensors"));
    EXPECT_TRUE(is_file(t.out + "/adapter_model.safetensors"));
    if (t.model.ends_with("sparse_model")) {
      EXPECT_NE(infer::SparseEmbedder::open(t.out).embed(kTexts).values,
                infer::SparseEmbedder::open(t.model).embed(kTexts).values);
    } else if (t.model.ends_with("multi_vector_model")) {
      EXPECT_NE(infer::MultiVectorEmbedder::open(t.out).embed(kTexts).values,
                infer::MultiVectorEmbedder::open(t.model).embed(kTexts).values);
    } else {
      EXPECT_NE(infer::Reranker::open(t.out).score("the fox", kTexts),
                infer::Reranker::open(t.model).score("the fox", kTexts));
    }
  }
}

TEST_F(RetrieverTraining, KeepsTheBitsWhenLayersAreComputedAgainAndARunIsResumed) {
  for (const char* kind : {"sparse", "tokens", "scores"}) {
    SCOPED_TRACE(kind);
    const std::string name = kind;
    const EmbedderTraining whole = training(kind, "tuples", "ranking", name);
    const std::string expected = hash_of_weights(whole);
    EmbedderTraining again = whole;
    again.out = folder_ / (name + "-again");
    again.recompute = -1;
    EXPECT_EQ(hash_of_weights(again), expected);
    EmbedderTraining stopped = whole;
    stopped.out = folder_ / (name + "-stopped");
    EXPECT_TRUE(train_embedder(stopped, {}, stop_after(2)).interrupted);
    EXPECT_EQ(hash_of_weights(stopped), expected);
  }
}

TEST_F(RetrieverTraining, MeasuresSimilarities) {
  write_file_atomically(folder_ / "scored.csv",
                        "sentence1,sentence2,score\nthe fox,a fox,1\nthe day,never,0\n"
                        "the eye,light falls,0.5\n");
  for (const char* kind : {"sparse", "tokens", "scores"}) {
    SCOPED_TRACE(kind);
    EmbedderTraining t = training(kind, "pairs", "ranking", kind);
    t.validation = folder_ / "scored.csv";
    const TrainResult result = train_embedder(t);
    ASSERT_EQ(result.metrics.size(), 1);
    EXPECT_EQ(result.metrics[0].first, "spearman");
    EXPECT_GE(result.metrics[0].second, result.start_metrics.at(0).second);
  }
}

TEST_F(RetrieverTraining, RefusesLossesOfOtherKinds) {
  refuse(training("sparse", "tuples", "lambda"),
         {"loss: not one for sparse encoders; expected ranking, margin_mse, kl"});
  refuse(training("tokens", "tuples", "gist"),
         {"loss: not one for late interaction models", "scaled_kl"});
  refuse(training("scores", "tuples", "kl"), {"loss: not one for cross-encoders", "list_net"});
  EmbedderTraining dense = training("tokens", "tuples", "list_net");
  dense.model = kGoldens + "sentence_model";
  refuse(dense, {"loss: not one for dense vectors; expected ranking, cosine"});
}

TEST_F(RetrieverTraining, RefusesExamplesThatDoNotSuit) {
  refuse(training("scores", "pairs", "list_net"),
         {"loss: list_net, but ", "pairs.jsonl has pairs; expected triplets with scores"});
  refuse(training("sparse", "triplets", "kl"), {"loss: kl", "has the margins of a teacher"});
  EmbedderTraining t = training("sparse", "pairs", "ranking");
  t.data = kGoldens + "embedder_losses/scored.jsonl";
  refuse(t, {"loss: ranking", "has scored pairs; expected pairs"});
}

TEST_F(RetrieverTraining, RefusesOptionsOfOtherKinds) {
  EmbedderTraining t = training("sparse", "pairs", "ranking");
  t.dimensions = {4};
  refuse(t, {"dimensions: given for sparse encoders; expected a model of dense vectors"});
  t = training("tokens", "pairs", "ranking");
  t.query_weight = 1;
  refuse(t, {"query_weight: given for late interaction models; expected a sparse encoder"});
  t.query_weight = EmbedderTraining().query_weight;
  t.token_width = 64;
  refuse(t, {"token_width: given for late interaction models; expected an encoder that gets a"});
  t = training("tokens", "pairs", "ranking");
  t.model = kGoldens + "sentence_model";
  t.document_weight = 1;
  refuse(t, {"document_weight: given for dense vectors; expected a sparse encoder"});
  t = training("scores", "tuples", "mse");
  t.temperature = 2;
  refuse(t, {"temperature: given with `loss` mse"});
  t.temperature = 0;
  t.learn_pooling = LearnedPooling::tokens;
  refuse(t, {"learn_pooling: given for cross-encoders"});
}

TEST_F(RetrieverTraining, RefusesModelsThatCannotBeTrained) {
  EmbedderTraining t = training("sparse", "pairs", "ranking");
  t.model = kGoldens + "sparse_router";
  refuse(t, {"sparse_router/modules.json: the first module is Router; expected Transformer"},
         ErrorKind::Unsupported);
  t.model = folder_ / "sum";
  std::filesystem::copy(kGoldens + "sparse_model", t.model,
                        std::filesystem::copy_options::recursive);
  write_file_atomically(t.model + "/1_SpladePooling/config.json", R"({"pooling_strategy": "sum"})");
  refuse(t, {"pooling_strategy is sum; expected max"}, ErrorKind::Unsupported);
  t.model = kGoldens + "sentence_model";
  t.kind = TrainedKind::sparse;
  refuse(t, {"sentence_model"}, ErrorKind::Unsupported);
  t.model = kGoldens + "fine_tuning/model";
  t.kind = TrainedKind::scores;
  refuse(t, {"neither a sequence classifier with one label nor an encoder"},
         ErrorKind::Unsupported);
}

}  // namespace
}  // namespace fovea::train
