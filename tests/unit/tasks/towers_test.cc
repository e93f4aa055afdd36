// The contrastive training of CLIP and SigLIP, compared with transformers on the files of
// tools/goldens/make_vision.py.

#include "tasks/towers_task.h"

#include <cmath>
#include <filesystem>

#include "base/json.h"
#include "base/threads.h"
#include "fovea/infer/image_model.h"
#include "loop/stepper.h"
#include "losses/contrastive_loss.h"
#include "open/towers.h"
#include "safetensors/safetensors.h"
#include "support/expect_error.h"
#include "support/gradient_check.h"
#include "support/runs.h"

namespace fovea::train {
namespace {

const std::string kTowers = "tests/goldens/vision/";

nlohmann::json expected_of(const std::string& name) {
  return read_json(kTowers + name + "/expected.json");
}

class ContrastiveTraining : public testing::TestWithParam<const char*> {
 protected:
  ContrastiveTraining() {
    const nlohmann::json expected = expected_of(GetParam());
    const std::string here = std::filesystem::current_path().string();
    std::string table = "file,caption\n";
    for (size_t i = 0; i < expected["images"].size(); ++i)
      table += fmt::format("{}/tests/goldens/images/{},\"{}\"\n", here,
                           expected["images"][i].get<std::string>(),
                           expected["texts"][i].get<std::string>());
    write_file_atomically(runs_ / "pairs.csv", table);
  }
  TrainOptions training(const std::string& out) const {
    TrainOptions options;
    options.images = {runs_ / "pairs.csv"};
    options.validation_images = options.images;
    options.from = kTowers + GetParam();
    options.out = runs_ / out;
    options.batch = 4;
    options.steps = 6;
    options.precision = Precision::fp32;
    return options;
  }

  Runs runs_;
};

void expect_gradient(const Tensor& found, const Tensor& expected, const std::string& name,
                     double scale) {
  ASSERT_EQ(found.size(), expected.size()) << name;
  for (int64_t i = 0; i < found.size(); ++i)
    ASSERT_NEAR(found.data_as<float>()[i], expected.data_as<float>()[i], 1e-5 * scale) << name;
}

// The batch may be divided into passes, whose gradients are cached.
TEST_P(ContrastiveTraining, LossAndGradientsAreThoseOfTransformers) {
  const SafeTensors expected(kTowers + GetParam() + "/expected.safetensors");
  for (const int64_t passes : {1, 2}) {
    TrainOptions options = training("out");
    options.batch = 4 / passes;
    options.accumulate = passes;
    Job job = prepare_towers({}, options, [](const std::string&) {});
    const Stepper stepper(job.model, *job.task, job.options,
                          job.compute);  // requests the gradients
    const double loss = expected.tensor("loss").data_as<float>()[0];
    EXPECT_NEAR(job.task->backward(job.model, 0).loss, loss, 1e-5 * std::abs(loss));
    model::Towers gradients = model::open_towers(kTowers + GetParam(), model::Weights::owned, {});
    std::map<std::string, Tensor> of_texts;
    for (const auto& [name, parameter] : job.task->own_parameters())
      of_texts[name] = parameter->value.gradient();
    std::map<std::string, Tensor> of_images;
    for (const auto& [name, parameter] : model::parameters_of(job.model))
      of_images[name] = parameter->value.gradient();
    gradients.image.model.each([&](const std::string& name, model::Parameter& p) {
      p.value = of_images.at(name).view(p.value.shape());
    });
    gradients.text.model.each([&](const std::string& name, model::Parameter& p) {
      p.value = of_texts.at("text." + name).view(p.value.shape());
    });
    size_t compared = 0;
    for (model::ModelFiles* part : {&gradients.image, &gradients.text}) {
      const std::string prefix = part->origin.family->prefix;
      for (const auto& [name, value] :
           model::checkpoint_tensors(part->model, *part->origin.family)) {
        expect_gradient(value, expected.tensor("grad." + prefix + name), name, 1 + loss);
        ++compared;
      }
    }
    EXPECT_GT(compared, 60u);
    expect_gradient(of_texts.at("logit_scale"), expected.tensor("grad.logit_scale"), "scale", 10);
    if (of_texts.contains("logit_bias"))
      expect_gradient(of_texts.at("logit_bias"), expected.tensor("grad.logit_bias"), "bias", 1);
  }
}

TEST_P(ContrastiveTraining, HasTheSameBitsForAnyThreadsAndAfterAResume) {
  const int before = thread_count();
  std::vector<std::string> weights;
  for (const int threads : {1, 3}) {
    set_threads(threads);
    const TrainOptions options = training(fmt::format("threads{}", threads));
    train({}, options);
    weights.push_back(read_file(options.out + "/model.safetensors"));
  }
  set_threads(before);
  TrainOptions again = training("again");
  train({}, again, {}, stop_after(3));
  train({}, again);
  EXPECT_EQ(weights[0], weights[1]);
  EXPECT_EQ(read_file(again.out + "/model.safetensors"), weights[0]);
}

TEST_P(ContrastiveTraining, WritesADirectoryThatIsReadAgain) {
  TrainOptions options = training("out");
  options.learning_rate = 1e-9;  // the weights of the checkpoint
  options.steps = 1;
  options.weight_decay = 0;
  train({}, options);
  const infer::ImageModel before = infer::ImageModel::open(options.from),
                          after = infer::ImageModel::open(options.out);
  const auto texts = expected_of(GetParam())["texts"].get<std::vector<std::string>>();
  const auto x = before.embed_texts(texts), y = after.embed_texts(texts);
  ASSERT_EQ(x.values.size(), y.values.size());
  for (size_t i = 0; i < x.values.size(); ++i) EXPECT_NEAR(x.values[i], y.values[i], 1e-5);
  const SafeTensors old(options.from + "/model.safetensors"),
      written(options.out + "/model.safetensors");
  for (const StoredTensor& tensor : old.stored()) {
    ASSERT_NE(written.find(tensor.name), nullptr) << tensor.name;
    EXPECT_EQ(written.find(tensor.name)->shape, tensor.shape) << tensor.name;
  }
  EXPECT_EQ(written.stored().size(), old.stored().size());
  const nlohmann::json config = read_json(options.out + "/config.json"),
                       given = read_json(options.from + "/config.json");
  for (const char* part : {"text_config", "vision_config"})
    for (const char* key : {"hidden_act", "hidden_size", "layer_norm_eps", "model_type"})
      EXPECT_EQ(config[part][key], given[part][key]) << part << " " << key;
  EXPECT_EQ(config["architectures"], given["architectures"]);
  EXPECT_EQ(config["text_config"]["eos_token_id"], given["text_config"]["eos_token_id"]);
}

INSTANTIATE_TEST_SUITE_P(All, ContrastiveTraining, testing::Values("clip", "siglip"));

TEST(ContrastiveLoss, HasTheGradientsOfItsFormula) {
  const std::vector<Tensor> inputs = {test::normal({3, 4}, 1), test::normal({3, 4}, 2),
                                      test::normal({1}, 3, 0.5), test::normal({1}, 4)};
  test::check_gradients({inputs[0], inputs[1], inputs[2]}, [](const std::vector<Tensor>& in) {
    return contrastive_loss(in[0], in[1], in[2], {});
  });
  test::check_gradients(inputs, [](const std::vector<Tensor>& in) {
    return contrastive_loss(in[0], in[1], in[2], in[3]);
  });
  expect_error(ErrorKind::InvalidArgument, {"contrastive_loss", "[3, 4]", "[2, 4]"},
               [&] { contrastive_loss(inputs[0], test::normal({2, 4}, 5), inputs[2], {}); });
}

}  // namespace
}  // namespace fovea::train
