// Chats with images, compared with transformers on the files of
// tools/goldens/make_image_training.py.

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>

#include "base/base64.h"
#include "base/json.h"
#include "base/threads.h"
#include "fovea/infer/generate.h"
#include "fovea/infer/image_prompt.h"
#include "loop/stepper.h"
#include "open/image_text.h"
#include "start/prepare.h"
#include "support/expect_error.h"
#include "support/runs.h"

namespace fovea::train {
namespace {

const std::string kImageModels = "tests/goldens/image_text/";
const std::string kPictures = std::filesystem::current_path().string() + "/tests/goldens/images/";

class ImageChats : public testing::TestWithParam<const char*> {
 protected:
  std::string model() const { return kImageModels + GetParam(); }
  TrainOptions options(const std::string& out) const {
    TrainOptions o = runs_.options(out);
    o.data = {model() + "/chats.jsonl"};
    o.from = model();
    o.validation = 0;
    o.learning_rate = 1e-3;
    o.batch = 1;
    o.steps = 4;
    return o;
  }
  // One pass over all chats.
  Job whole_epoch(TrainOptions o) const {
    for (o.batch = 1;; ++o.batch) {
      Job job = prepare({}, o, true, [](const std::string&) {});
      if (job.task->steps_per_epoch() == 1) return job;
    }
  }
  std::string trained(const TrainOptions& o) const {
    train({}, o);
    return read_file(o.out + "/model.safetensors");
  }

  Runs runs_;
};

void expect_near(const Tensor& found, const Tensor& expected, const std::string& name) {
  ASSERT_EQ(found.size(), expected.size()) << name;
  float most = 0;
  for (const float x : expected.span<float>()) most = std::max(most, std::abs(x));
  for (int64_t i = 0; i < found.size(); ++i)
    ASSERT_NEAR(found.data_as<float>()[i], expected.data_as<float>()[i], 1e-3 * most) << name;
}

TEST_P(ImageChats, LossAndGradientsAreThoseOfTransformers) {
  const SafeTensors expected(model() + "/training.safetensors");
  Job job = whole_epoch(options("out"));
  const Stepper stepper(job.model, *job.task, job.options, job.compute);  // requests gradients
  const double loss = expected.tensor("loss").data_as<float>()[0];
  EXPECT_NEAR(job.task->backward(job.model, 0).loss, loss, 1e-4 * loss);
  model::Transformer gradients = job.model;
  std::map<std::string, Tensor> all;
  for (const auto& [name, p] : model::parameters_of(gradients)) p->value = p->value.gradient();
  for (auto& [name, value] : model::checkpoint_tensors(gradients, *job.family)) {
    const bool in_decoder = name.starts_with("model.");
    all[in_decoder ? model::decoder_module(model()) + name.substr(5) : name] = value;
  }
  for (const auto& [name, p] : job.task->own_parameters()) {
    const std::string layer = name.substr(0, name.rfind('.')), part = name.substr(layer.size());
    const bool tiles = expected.find("grad.model.multi_modal_projector.linear_1.weight") == nullptr;
    all[(tiles                        ? "model.connector.modality_projection.proj"
         : layer == "connector.first" ? "model.multi_modal_projector.linear_1"
                                      : "model.multi_modal_projector.linear_2") +
        part] = p->value.gradient();
  }
  EXPECT_EQ(all.size() + 1, expected.stored().size());
  for (const auto& [name, value] : all) {
    ASSERT_NE(expected.find("grad." + name), nullptr) << name;
    expect_near(value, expected.tensor("grad." + name), name);
  }
}

TEST_P(ImageChats, HaveTheSameBitsForAnyThreadsPassesAndAfterAResume) {
  const int before = thread_count();
  TrainOptions o = options("whole");
  o.batch = 4;
  const std::string whole = trained(o);
  set_threads(3);
  o.out = runs_ / "threads";
  EXPECT_EQ(trained(o), whole);
  set_threads(before);
  o.out = runs_ / "passes";
  o.batch = 1;
  o.accumulate = 4;
  EXPECT_EQ(trained(o), whole);
  o = options("resumed");
  o.batch = 4;
  train({}, o, {}, stop_after(2));
  EXPECT_EQ(trained(o), whole);
  EXPECT_NE(read_file(model() + "/model.safetensors"), whole);
}

TEST_P(ImageChats, WriteADirectoryOfTheSameKind) {
  TrainOptions o = options("out");
  o.learning_rate = 1e-2;
  train({}, o);
  const SafeTensors old(model() + "/model.safetensors"), written(o.out + "/model.safetensors");
  EXPECT_EQ(written.stored().size(), old.stored().size());
  for (const StoredTensor& tensor : old.stored()) {
    ASSERT_NE(written.find(tensor.name), nullptr) << tensor.name;
    const bool same = to_floats(old.tensor(tensor.name)) == to_floats(written.tensor(tensor.name));
    EXPECT_EQ(same, tensor.name.find("vision") != std::string::npos) << tensor.name;
  }
  nlohmann::json config = read_json(o.out + "/config.json");
  EXPECT_EQ(config["dtype"], nlohmann::json("float32"));
  EXPECT_EQ(config["model_type"], read_json(model() + "/config.json")["model_type"]);
  EXPECT_TRUE(infer::reads_images(model::Model::open(o.out)));
  // It is trained further, and a snapshot has the trained connector.
  TrainOptions more = options("more");
  more.from = o.out;
  more.data = {model() + "/chats.jsonl"};
  EXPECT_GT(train({}, more).loss, 0);
}

TEST_P(ImageChats, AdaptersChangeTheDecoderOnly) {
  TrainOptions o = options("adapter");
  o.lora.rank = 2;
  o.learning_rate = 0.1;
  train({}, o);
  const SafeTensors tensors(o.out + "/adapter_model.safetensors");
  for (const StoredTensor& tensor : tensors.stored())
    EXPECT_TRUE(tensor.name.starts_with("base_model.model." + model::decoder_module(model()) + "."))
        << tensor.name;
  const auto answer = [&](const std::string& folder) {
    const model::Model opened = model::Model::open(folder);
    const infer::ImagePrompt prompt = infer::image_prompt(
        opened, "<image>What?", 1, [](size_t) { return media::read_image(kPictures + "005.png"); },
        text::SpecialTokens::parsed);
    return infer::score(opened, prompt, {{40, 41}});
  };
  EXPECT_NE(answer(o.out), answer(model()));
  TrainOptions again = options("again");
  again.from = o.out;
  EXPECT_GT(train({}, again).loss, 0);
}

INSTANTIATE_TEST_SUITE_P(All, ImageChats,
                         testing::Values("llava", "llava_siglip", "idefics3", "smolvlm"));

// Other forms of records, and input that is wrong.
class ImageRecords : public testing::Test {
 protected:
  TrainOptions options(const std::string& lines, const std::string& from = "llava") const {
    write_file_atomically(runs_ / "chats.jsonl", lines);
    TrainOptions o = runs_.options("out");
    o.data = {runs_ / "chats.jsonl"};
    o.from = from == "text" ? "tests/goldens/fine_tuning/model" : kImageModels + from;
    o.validation = 0;
    o.steps = 1;
    o.batch = 1;
    return o;
  }
  static std::string record(const std::string& image, const std::string& answer = "a cat") {
    return fmt::format(R"({{"messages": [{{"role": "user", "content": [{}, )"
                       R"({{"type": "text", "text": "What?"}}]}}, )"
                       R"({{"role": "assistant", "content": "{}"}}]}})"
                       "\n",
                       image, answer);
  }
  static std::string file(const std::string& path) {
    return fmt::format(R"({{"type": "image", "path": "{}"}})", path);
  }
  double loss_of(const std::string& lines) const {
    Job job = prepare({}, options(lines), true, [](const std::string&) {});
    const Stepper stepper(job.model, *job.task, job.options, job.compute);  // requests gradients
    return job.task->backward(job.model, 0).loss;
  }
  void refused(const std::string& lines, std::initializer_list<std::string> words,
               const std::string& from = "llava") const {
    const TrainOptions o = options(lines, from);
    expect_error(ErrorKind::BadFile, words, [&] { plan_training({}, o); });
  }

  Runs runs_;
};

TEST_F(ImageRecords, HaveOneMeaningInEveryForm) {
  const std::string path = kPictures + "005.png";
  const double loss = loss_of(record(file(path)));
  EXPECT_GT(loss, 0);
  std::filesystem::copy_file(path, runs_ / "cat.png");
  EXPECT_EQ(loss_of(record(file("cat.png"))), loss) << "relative to the data";
  EXPECT_EQ(loss_of(record(R"({"type": "image", "url": "file://)" + path + "\"}")), loss);
  EXPECT_EQ(loss_of(record(R"({"type": "image_url", "image_url": {"url": ")" + path + "\"}}")),
            loss);
  EXPECT_EQ(loss_of(R"({"image": "cat.png", "conversations": [{"from": "human", "value": )"
                    R"("<image>\nWhat?"}, {"from": "gpt", "value": "a cat"}]})"
                    "\n"),
            loss);
  EXPECT_EQ(loss_of(R"({"images": ["cat.png"], "messages": [{"role": "user", "content": )"
                    R"("<image>What?"}, {"role": "assistant", "content": "a cat"}]})"
                    "\n"),
            loss);
  EXPECT_NE(loss_of(record(file(kPictures + "011.jpg"))), loss);
}

TEST_F(ImageRecords, RefuseBadInputBeforeTheFirstStep) {
  const std::string good = record(file(kPictures + "005.png"));
  const auto second = [&](const std::string& image) { return good + record(image); };
  refused(second(file("none.png")), {"chats.jsonl:2: messages[0].content[0].path", "none.png"});
  write_file_atomically(runs_ / "bad.png", "\x89PNG\r\n\x1a\n damaged");
  refused(second(file("bad.png")), {"chats.jsonl:2: messages[0].content[0].path", "bad.png"});
  refused(second(file("https://example.org/a.png")), {"chats.jsonl:2", "nothing is fetched"});
  refused(second(R"({"type": "image"})"), {"chats.jsonl:2", "expected an image with \"path\""});
  refused(second(R"({"type": "image", "path": 5})"), {"chats.jsonl:2", "the path of an image"});
  refused(second(R"({"type": "image_url", "image_url": {"url": "data:image/png,abc"}})"),
          {"chats.jsonl:2", "not base64"});
  refused(second(R"({"type": "audio"})"), {"chats.jsonl:2", "a part of the type text or image"});
  refused(R"({"images": ["a.png", "b.png"], "messages": [{"role": "user", "content": )"
          R"("<image>What?"}, {"role": "assistant", "content": "a cat"}]})"
          "\n",
          {"chats.jsonl:1: 2 images for 1 marks <image>"});
  refused(good, {"chats.jsonl:1: messages[0].content[0]", "since the model reads no images"},
          "text");
  TrainOptions o = options(good);
  write_file_atomically(runs_ / "blind.jinja",
                        "{% for m in messages %}{{ m['role'] }}{% endfor %}");
  o.chat_template = runs_ / "blind.jinja";
  expect_error(ErrorKind::BadFile, {"chats.jsonl:1: the chat template shows 0 images of 1"},
               [&] { plan_training({}, o); });
  o = options(good);
  o.average = 2;
  expect_error(ErrorKind::InvalidArgument, {"average: given for a model that reads images"},
               [&] { plan_training({}, o); });
}

TEST_F(ImageRecords, ThePlanCountsTheEncoderAndItsTokens) {
  const TrainOptions o = options(record(file(kPictures + "009.png")), "idefics3");
  const TrainPlan plan = plan_training({}, o);
  const SafeTensors all(o.from + "/model.safetensors");
  int64_t parameters = 0, of_encoder = 0;
  for (const StoredTensor& tensor : all.stored()) {
    parameters += elements(tensor.shape);
    if (tensor.name.find("vision_model") != std::string::npos) of_encoder += elements(tensor.shape);
  }
  EXPECT_EQ(plan.parameters, parameters);
  EXPECT_EQ(plan.trained_parameters, parameters - of_encoder);
  EXPECT_GT(plan.training_tokens, 10 * 25) << "the tokens of ten tiles";
  const auto says = [&](const std::string& text) {
    return std::any_of(plan.notes.begin(), plan.notes.end(),
                       [&](const auto& note) { return note.find(text) != std::string::npos; });
  };
  EXPECT_TRUE(says("is user \"<image>What?\", assistant \"a cat\""));
  EXPECT_TRUE(says("1 images in 10 tiles, each of which takes 25 tokens"));
  EXPECT_TRUE(says("the decoder and the connector are trained"));
  // A text that would lose a part of its image is left out.
  TrainOptions cut = options(
      record(file(kPictures + "009.png")) + record(R"({"type": "text", "text": "no image"})"),
      "idefics3");
  cut.length = 100;
  EXPECT_EQ(plan_training({}, cut).training_sequences, 1);
}

}  // namespace
}  // namespace fovea::train
