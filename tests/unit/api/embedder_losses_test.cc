// The losses of embedders, compared with sentence-transformers (tools/goldens/
// make_embedder_losses.py), and the examples that each refuses.

#include <gtest/gtest.h>

#include "base/json.h"
#include "fovea/train/train_embedder.h"
#include "support/expect_error.h"
#include "support/temporary_folder.h"

namespace fovea::train {
namespace {

const std::string kGoldens = "tests/goldens/embedder_losses/";
constexpr const char* kNames[] = {"automatic", "ranking",    "cosine", "cosent", "angle",
                                  "triplet",   "margin_mse", "kl",     "gist"};

class EmbedderLosses : public testing::Test {
 protected:
  EmbedderTraining training(const std::string& file, const std::string& loss) const {
    EmbedderTraining t;
    t.model = kGoldens + "model";
    t.data = kGoldens + file;
    t.out = folder_ / "out";
    t.loss = static_cast<EmbeddingLoss>(std::find(std::begin(kNames), std::end(kNames), loss) -
                                        std::begin(kNames));
    if (loss == "gist") t.guide = "tests/goldens/sentence_model";
    t.warmup = 0;
    t.save_every = 0;
    return t;
  }
  void refuse(const EmbedderTraining& t, std::initializer_list<std::string> parts) const {
    expect_error(ErrorKind::InvalidArgument, parts, [&] { plan_embedder_training(t); });
  }

  TemporaryFolder folder_;
};

TEST_F(EmbedderLosses, EqualThoseOfSentenceTransformers) {
  int64_t number = 0;
  for (const nlohmann::json& each : read_json(kGoldens + "expected.json")) {
    EmbedderTraining t = training(each["file"], each["loss"]);
    t.out = folder_ / std::to_string(number++);
    t.temperature = each.value("temperature", 0.0);
    if (each.contains("margin")) t.margin = each["margin"].get<double>();
    if (each.contains("relative_margin")) t.relative_margin = each["relative_margin"].get<double>();
    t.dimensions = each.value("dimensions", std::vector<int64_t>());
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
  EXPECT_EQ(number, 17);
}

TEST_F(EmbedderLosses, RefuseExamplesThatDoNotSuit) {
  refuse(training("pairs.jsonl", "triplet"),
         {"loss: triplet, but ", "pairs.jsonl has pairs; expected triplets (anchor, positive"});
  refuse(training("pairs.jsonl", "cosent"), {"loss: cosent", "expected scored pairs (sentence1"});
  refuse(training("pairs.jsonl", "kl"), {"loss: kl", "has pairs; expected triplets"});
  refuse(training("scored.jsonl", "ranking"),
         {"loss: ranking", "has scored pairs; expected pairs (anchor, positive) or triplets"});
  refuse(training("scored.jsonl", "gist"), {"loss: gist", "has scored pairs"});
  refuse(training("triplets.jsonl", "cosine"), {"loss: cosine", "has triplets"});
  refuse(training("triplets.jsonl", "kl"), {"loss: kl", "has the margins of a teacher"});
}

TEST_F(EmbedderLosses, RefuseParametersThatTheyDoNotUse) {
  EmbedderTraining t = training("scored.jsonl", "automatic");
  t.temperature = 0.1;
  refuse(t, {"temperature: given with `loss` cosine; expected ranking, cosent, angle, kl or gist"});
  t = training("pairs.jsonl", "automatic");
  t.margin = 1;
  refuse(t, {"margin: given with `loss` ranking; expected triplet or gist"});
  t = training("triplets.jsonl", "triplet");
  t.relative_margin = 0.1;
  refuse(t, {"relative_margin: given with `loss` triplet; expected gist"});
  t.relative_margin.reset();
  t.guide = "tests/goldens/sentence_model";
  refuse(t, {"guide: given with `loss` triplet; expected gist"});
  t = training("pairs.jsonl", "gist");
  t.margin = t.relative_margin = 0.1;
  refuse(t, {"margin: given with `relative_margin`"});
  t = training("pairs.jsonl", "gist");
  t.guide.clear();
  refuse(t, {"guide: not given with `loss` gist"});
  t.guide = folder_ / "none";
  expect_error(ErrorKind::BadFile, {"none"}, [&] { plan_embedder_training(t); });
}

}  // namespace
}  // namespace fovea::train
