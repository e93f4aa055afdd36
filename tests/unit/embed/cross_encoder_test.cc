#include "embed/cross_encoder.h"

#include "embed/batching.h"
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
