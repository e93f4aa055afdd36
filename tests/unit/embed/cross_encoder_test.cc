#include "embed/cross_encoder.h"

#include <filesystem>

#include "embed/batching.h"
#include "fovea/infer/embed.h"
#include "support/expect_error.h"
#include "support/golden_folder.h"

namespace fovea::infer {
namespace {

class CrossEncoderTest : public testing::Test {
 protected:
  CrossEncoder open() const { return CrossEncoder::open(folder_.path(), model::Weights::mapped); }
  GoldenFolder folder_{"cross_encoder"};
};

TEST_F(CrossEncoderTest, MatchesTheReference) {
  const CrossEncoder model = open();
  const auto texts = folder_.texts();
  const auto pairs = tokenize_all(texts.size(), [&](size_t i) {
    return model.format.pair(model.format.own_ids(texts[0]), texts[i]);
  });
  const Tensor logits = in_batches(
      pairs, 1, 24, [&](const TokenBatch& batch) { return model.logits(batch, DType::f32); });
  EXPECT_LT(largest_difference(logits.view({logits.dim(0)}), folder_.expected("logits")), 1e-5);
  const Tensor scores = activation(logits, *model.activation);
  EXPECT_LT(largest_difference(scores.view({scores.dim(0)}), folder_.expected("scores")), 1e-5);
}

// A language model whose answers "yes" and "no" are compared.
class JudgeTest : public testing::Test {
 protected:
  Tensor scores(const CrossEncoder& model, const std::string& prompt) const {
    const auto texts = folder_.texts();
    const auto pairs = tokenize_all(
        texts.size(), [&](size_t i) { return model.format.pair(prompt, texts[0], texts[i]); });
    const Tensor logits = in_batches(
        pairs, 1, 1024, [&](const TokenBatch& batch) { return model.logits(batch, DType::f32); });
    return activation(logits, *model.activation).view({logits.dim(0)});
  }
  GoldenFolder folder_{"embedders/qwen3_reranker"};
};

TEST_F(JudgeTest, MatchesTheReference) {
  const CrossEncoder model = CrossEncoder::open(folder_.path(), model::Weights::mapped);
  EXPECT_LT(largest_difference(scores(model, ""), folder_.expected("scores")), 1e-5);
  EXPECT_LT(largest_difference(scores(model, "find animals"), folder_.expected("instructed")),
            1e-5);
}

TEST_F(JudgeTest, MatchesTheCodeOfTheAuthorsWithoutModulesAndTemplate) {
  for (const char* name : {"modules.json", "config_sentence_transformers.json",
                           "sentence_bert_config.json", "chat_template.jinja"})
    ASSERT_TRUE(std::filesystem::remove(folder_ / name)) << name;
  for (const model::Weights weights : {model::Weights::mapped, model::Weights::packed}) {
    const CrossEncoder model = CrossEncoder::open(folder_.path(), weights);
    EXPECT_LT(largest_difference(scores(model, "find animals"), folder_.expected("original")),
              1e-4);
  }
}

TEST_F(JudgeTest, UsesTheDefaultPromptAndTheTokensOfTheModule) {
  const std::string own = "config_sentence_transformers.json", module = "1_LogitScore/config.json";
  folder_.set(own, "prompts", {{"animals", "find animals"}});
  folder_.set(own, "default_prompt_name", "animals");
  const Reranker reranker = Reranker::open(folder_.path(), model::WeightPrecision::full);
  const auto texts = folder_.texts();
  const Tensor found = tensor_of(reranker.score(texts[0], texts), {std::ssize(texts)});
  EXPECT_LT(largest_difference(found, folder_.expected("instructed")), 1e-5);
  const nlohmann::json config = folder_.read(module);
  folder_.set(module, "true_token_id", config["false_token_id"]);
  folder_.set(module, "false_token_id", config["true_token_id"]);
  const Reranker opposite = Reranker::open(folder_.path(), model::WeightPrecision::full);
  EXPECT_NEAR(opposite.score(texts[0], {texts[1]})[0], 1 - found.data_as<float>()[1], 1e-5);
}

TEST_F(CrossEncoderTest, FindsTheActivationInAllFiles) {
  const char* own = "config_sentence_transformers.json";
  EXPECT_EQ(open().activation, Activation::sigmoid);
  folder_.set(own, "activation_fn", "torch.nn.modules.linear.Identity");
  EXPECT_FALSE(open().activation.has_value());
  folder_.set(own, "activation_fn", absent);
  EXPECT_EQ(open().activation, Activation::sigmoid);  // the default for one label
  folder_.set("config.json", "sbert_ce_default_activation_function", "torch.nn.Tanh");
  EXPECT_EQ(open().activation, Activation::tanh);
  folder_.set("config.json", "sentence_transformers", {{"activation_fn", "torch.nn.Identity"}});
  EXPECT_FALSE(open().activation.has_value());
}

TEST_F(CrossEncoderTest, RefusesOtherModels) {
  expect_error(ErrorKind::Unsupported, {"not a sequence classifier"},
               [] { CrossEncoder::open("tests/goldens/sentence_model", model::Weights::mapped); });
}

}  // namespace
}  // namespace fovea::infer
