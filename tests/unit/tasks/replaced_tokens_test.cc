// Replaced-token detection: the losses of transformers and PyTorch
// (tools/goldens/make_replaced_tokens.py), what a model learns, and the files.

#include "losses/replaced_tokens.h"

#include <gtest/gtest.h>

#include <fstream>

#include <cmath>
#include <filesystem>

#include "base/json.h"
#include "base/threads.h"
#include "open/directory.h"
#include "support/expect_error.h"
#include "support/golden_folder.h"
#include "support/runs.h"
#include "tensor/tape.h"

namespace fovea::train {
namespace {

// The golden generator and model, with shared embeddings, and their batch.
struct GoldenElectra {
  SafeTensors expected{"tests/goldens/replaced_tokens/expected.safetensors"};
  model::ModelFiles generator =
      model::open_model_files("tests/goldens/replaced_tokens/generator", model::Weights::owned);
  model::ModelFiles model =
      model::open_model_files("tests/goldens/replaced_tokens/model", model::Weights::owned);
  Batch batch;

  GoldenElectra() {
    for (model::Transformer* each : {&model.model, &generator.model})
      each->each([](const std::string&, model::Parameter& p) { p.value.want_gradient(); });
    share_embeddings(model.model, generator.model);
    batch.source.ids = copy(expected.tensor("ids"));
    batch.labels = copy(expected.tensor("labels"));
    batch.meaning = DrawnTokens{copy(expected.tensor("numbers"))};
    for (int64_t i = 0; i < batch.labels.size(); ++i)
      batch.predictions += batch.labels.data_as<int32_t>()[i] >= 0;
    batch.units = batch.labels.dim(0);
  }
  void expect_equal(const Tensor& found, const std::string& name) const {
    const Tensor wanted = expected.tensor(name);
    ASSERT_EQ(found.shape(), wanted.shape()) << name;
    for (int64_t i = 0; i < found.size(); ++i)
      EXPECT_EQ(found.data_as<int32_t>()[i], wanted.data_as<int32_t>()[i]) << name << " " << i;
  }
  void expect_close(const Tensor& found, const std::string& name) const {
    const Tensor wanted = copy(expected.tensor(name));
    double most = 0;
    for (const float x : to_floats(wanted)) most = std::max(most, std::abs(double{x}));
    EXPECT_LT(largest_difference(found, wanted), 1e-4 * most) << name;
  }
};

TEST(ReplacedTokens, HaveTheLossesAndGradientsOfTransformers) {
  const GoldenElectra golden;
  const model::Transformer &generator = golden.generator.model, &model = golden.model.model;
  EXPECT_EQ(model::write_spec(generator_spec(model.spec, 0.5)), model::write_spec(generator.spec));
  const ReplacedTokens found =
      replace_tokens(generator, golden.batch, {}, static_cast<double>(golden.batch.predictions));
  golden.expect_equal(found.batch.source.ids, "replaced_ids");
  golden.expect_equal(found.batch.labels, "replaced");
  const Tensor z = detection_logits(model, found.batch, {});
  const Tensor detection = detection_loss(z, found.batch.labels, static_cast<double>(z.size()));
  const std::vector<float> losses = to_floats(golden.expected.tensor("losses"));
  EXPECT_NEAR(number_of(found.generator_loss), losses[0], 1e-5);
  EXPECT_NEAR(number_of(detection), losses[1], 1e-6);
  golden.expect_close(z.detach(), "logits");
  backward(add(found.generator_loss, multiply(detection, full({1}, 50, DType::f64))));
  golden.expect_close(model.token_embedding.value.gradient(), "grad.token");
  golden.expect_close(model.encoder.positions.table.value.gradient(), "grad.position");
  golden.expect_close(generator.encoder.projection.weight.value.gradient(), "grad.projection");
  golden.expect_close(generator.head.transform.weight.value.gradient(), "grad.predictions");
  golden.expect_close(model.head.transform.weight.value.gradient(), "grad.detector");
}

const std::vector<std::string> kTopics[] = {{"fox", "bird", "wolf", "deer"},
                                            {"bread", "soup", "rice", "cake"}};

class ReplacedTokensRun : public testing::Test {
 protected:
  // Long parts of the text have words of one topic only.
  ReplacedTokensRun() {
    std::string text;
    for (uint64_t i = 0; i < 6000; ++i)
      text += kTopics[i / 200 % 2][philox(3, Stream::shuffle, 40, i)[0] % 4] +
              (i % 8 == 7 ? "\n" : " ");
    write_file_atomically(runs_ / "lines.txt", text);
  }
  TrainOptions options(const std::string& out) const {
    TrainOptions o = runs_.options(out);
    o.data = {runs_ / "lines.txt"};
    o.objective = Objective::replaced_tokens;
    o.generator_size = 0.5;
    o.tokenizer = "wordpiece:60";
    o.learning_rate = 1e-2;
    o.batch = 8;
    o.steps = 20;
    return o;
  }

  Runs runs_;
};

// At first, the generator draws words of both topics. Later it draws those of the right topic,
// which nothing can tell from the original.
TEST_F(ReplacedTokensRun, LearnsToTellThem) {
  TrainOptions o = options("out");
  o.steps = 400;
  o.learning_rate = 3e-3;
  o.evaluate_every = 25;
  o.best_by = "mcc";
  const TrainResult result = train(small_encoder(), o);
  double mcc = 0;
  for (const auto& [name, value] : result.metrics)
    if (name == "mcc") mcc = value;
  EXPECT_GT(mcc, 0.5);
  const model::ModelFiles model = model::open_model_files(o.out, model::Weights::mapped),
                          generator =
                              model::open_model_files(o.out + "/generator", model::Weights::mapped);
  EXPECT_STREQ(model.origin.family->model_type, "electra");
  EXPECT_STREQ(generator.origin.family->model_type, "electra");
  EXPECT_EQ(read_json(o.out + "/config.json")["architectures"][0], "ElectraForPreTraining");
  EXPECT_EQ(read_json(o.out + "/generator/config.json")["architectures"][0], "ElectraForMaskedLM");
  EXPECT_EQ(to_floats(model.model.token_embedding.value),
            to_floats(generator.model.token_embedding.value));
  std::ifstream log(o.out + "/log.jsonl");
  std::string text;
  while (std::getline(log, text) && text.find("\"loss\"") == std::string::npos) {
  }
  const nlohmann::json line = parse_json(text, "log");
  EXPECT_NEAR(line["loss"].get<double>(),
              line["generator_loss"].get<double>() + 50 * line["detection_loss"].get<double>(),
              1e-4);
}

TEST_F(ReplacedTokensRun, HasTheSameBitsForAnyThreadsAndAfterAResume) {
  const auto same = [&](const TrainOptions& a, const TrainOptions& b) {
    for (const char* file : {"/model.safetensors", "/generator/model.safetensors"})
      EXPECT_TRUE(read_file(a.out + file) == read_file(b.out + file)) << file;
  };
  model::Spec spec = small_encoder();
  spec.dropout = {0.1f, 0.1f, 0.1f};
  TrainOptions one = options("one"), three = options("three"), again = options("again");
  const int before = thread_count();
  set_threads(1);
  train(spec, one);
  set_threads(3);
  train(spec, three);
  set_threads(before);
  train(spec, again, {}, stop_after(9));
  train(spec, again);
  same(one, three);
  same(one, again);
}

TEST_F(ReplacedTokensRun, RefusesUnsuitableModels) {
  TrainOptions o = options("out");
  expect_error(ErrorKind::InvalidArgument, {"objective", "expected a text encoder"},
               [&] { train(small_spec(), o); });
  o.from = "tests/goldens/replaced_tokens/model";
  o.tokenizer = TrainOptions().tokenizer;  // that of the model
  expect_error(ErrorKind::InvalidArgument, {"from"}, [&] { train({}, o); });
}

}  // namespace
}  // namespace fovea::train
