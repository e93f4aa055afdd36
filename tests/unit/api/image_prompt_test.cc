// Compares models of texts with images with transformers, on the files of
// tools/goldens/make_image_text.py.

#include "fovea/infer/image_prompt.h"

#include <gtest/gtest.h>

#include <cmath>
#include <exception>
#include <future>
#include <set>

#include "base/json.h"
#include "fovea/infer/engine.h"
#include "fovea/infer/generate.h"
#include "fovea/infer/image_question.h"
#include "fovea/text/chat.h"
#include "generate/reading.h"
#include "open/model_parts.h"
#include "safetensors/safetensors.h"
#include "support/expect_error.h"
#include "tensor/tape.h"
#include "transformer/prompt_images.h"

namespace fovea {
namespace {

const std::string kFolder = "tests/goldens/image_text/";

infer::ImagePrompt prompt_of(const model::Model& model, const nlohmann::json& golden) {
  const auto names = golden["images"].get<std::vector<std::string>>();
  return infer::image_prompt(
      model, golden["text"], names.size(),
      [&](size_t i) { return media::read_image("tests/goldens/images/" + names[i]); },
      text::SpecialTokens::parsed);
}

// The logits of the last `rows` tokens of a prompt, which is read in pieces of `step` tokens.
Tensor last_logits(const model::Model& model, const infer::ImagePrompt& prompt, int64_t rows,
                   int64_t step) {
  const NoGradient off;
  const model::Transformer& transformer = model::parts_of(model).transformer;
  const int64_t n = std::ssize(prompt.ids);
  model::PagePool pool(model::page_layout(*transformer.spec.decoder, DType::f32),
                       {model::pages_for(n) + 1, 1, n}, cpu_device());
  model::CachedText text;
  EXPECT_TRUE(model::make_room(pool, text, n));
  Tensor all;
  for (int64_t begin = 0; begin < n; begin += step) {
    const int64_t count = std::min(step, n - begin);
    model::TokenVectors vectors;
    if (prompt.images) prompt.images->add_vectors(begin, count, 0, vectors);
    const std::vector<int32_t> ids(prompt.ids.begin() + begin, prompt.ids.begin() + begin + count);
    const Tensor hidden = infer::read_batch(transformer, pool, {{&text, count, n}}, ids, DType::f32,
                                            nullptr, {}, vectors);
    const Tensor part = hidden.view({1, count, hidden.dim(1)});
    all = all ? concat_tokens(all, part) : part;
  }
  std::vector<int32_t> last;
  for (int64_t r = n - rows; r < n; ++r) last.push_back(static_cast<int32_t>(r));
  const Tensor logits = infer::logits_of(transformer, all.view({n, all.dim(2)}), last);
  model::shorten(pool, text, 0);
  return logits;
}

class ImageTextGoldens : public testing::TestWithParam<const char*> {
 protected:
  std::string folder_ = kFolder + GetParam();
  model::Model model_ = model::Model::open(folder_);
  nlohmann::json golden_ = read_json(folder_ + "/expected.json");
};

TEST_P(ImageTextGoldens, TokensAreThoseOfTransformers) {
  ASSERT_TRUE(infer::reads_images(model_));
  EXPECT_EQ(infer::image_mark(model_), "<image>");
  for (const auto& one : golden_["cases"])
    EXPECT_EQ(prompt_of(model_, one).ids, one["ids"].get<std::vector<int32_t>>()) << one["text"];
}

TEST_P(ImageTextGoldens, LogitsAreThoseOfTransformers) {
  const SafeTensors expected(folder_ + "/expected.safetensors");
  for (size_t i = 0; i < golden_["cases"].size(); ++i) {
    const Tensor wanted = expected.tensor(fmt::format("logits.{}", i));
    const infer::ImagePrompt prompt = prompt_of(model_, golden_["cases"][i]);
    for (const int64_t step : {int64_t{1000}, int64_t{7}}) {  // at once, and images in pieces
      const Tensor found = last_logits(model_, prompt, wanted.dim(0), step);
      double worst = 0, scale = 0;
      for (int64_t k = 0; k < wanted.size(); ++k) {
        worst = std::max(worst,
                         std::abs(double{found.data_as<float>()[k]} - wanted.data_as<float>()[k]));
        scale = std::max(scale, std::abs(double{wanted.data_as<float>()[k]}));
      }
      EXPECT_LE(worst, 1e-4 * scale) << GetParam() << " case " << i << " step " << step;
    }
  }
}

TEST_P(ImageTextGoldens, ContinuationsAreThoseOfTransformers) {
  infer::GenerateOptions options;
  options.sampling.temperature = 0;
  options.max_tokens = 12;
  for (const auto& one : golden_["cases"])
    EXPECT_EQ(infer::generate(model_, prompt_of(model_, one), options)[0].ids,
              one["continuation"].get<std::vector<int32_t>>())
        << one["text"];
}

TEST_P(ImageTextGoldens, LabelsHaveTheProbabilitiesOfTransformers) {
  const nlohmann::json& asked = golden_["cases"][0];
  const media::Image image =
      media::read_image("tests/goldens/images/" + asked["images"][0].get<std::string>());
  const infer::ImageQuestion question{asked["text"]};
  std::vector<std::string> labels;
  std::vector<double> expected;
  for (const auto& [label, logprob] : golden_["labels"].items()) {
    labels.push_back(label);
    expected.push_back(logprob);
  }
  const std::vector<double> found = infer::label_logprobs(model_, question, image, labels);
  ASSERT_EQ(found.size(), labels.size());
  for (size_t i = 0; i < labels.size(); ++i) {
    EXPECT_NEAR(found[i], expected[i], 1e-4) << labels[i];
    // The bits do not depend on the other labels.
    EXPECT_EQ(infer::label_logprobs(model_, question, image, {labels[i]})[0], found[i])
        << labels[i];
  }
  expect_error(ErrorKind::InvalidArgument, {"labels: none"},
               [&] { infer::label_logprobs(model_, question, image, {}); });
  expect_error(ErrorKind::InvalidArgument, {"score:", "tokens; expected at most 513"},
               [&] { infer::label_logprobs(model_, question, image, {std::string(2000, 'y')}); });
  expect_error(ErrorKind::InvalidArgument, {"marks <image> for 1 images"},
               [&] { infer::label_logprobs(model_, {"what?"}, image, labels); });
}

INSTANTIATE_TEST_SUITE_P(All, ImageTextGoldens,
                         testing::Values("llava", "llava_siglip", "idefics3", "smolvlm"));

infer::GenerateOptions greedy_tokens(int64_t most) {
  infer::GenerateOptions options;
  options.sampling.temperature = 0;
  options.max_tokens = most;
  return options;
}

infer::ImagePrompt about(const model::Model& model, const std::string& image) {
  return infer::image_prompt(
      model, "<image>" + std::string(120, 'y'), 1,
      [&](size_t) { return media::read_image("tests/goldens/images/" + image); },
      text::SpecialTokens::parsed);
}

infer::Generation answered(infer::Engine& engine, const infer::ImagePrompt& prompt) {
  std::promise<infer::Generation> promise;
  engine.submit(prompt, greedy_tokens(12), [&](const infer::Event& event) {
    if (event.finished != nullptr) promise.set_value(*event.finished);
    if (event.error != nullptr) promise.set_exception(std::make_exception_ptr(*event.error));
    return true;
  });
  return promise.get_future().get();
}

// Prompts of equal tokens about different images, by one engine with a cache of prefixes.
TEST(ImagePrompts, EqualTokensNeverShareTheImagesOfOthers) {
  const model::Model model = model::Model::open(kFolder + "llava");
  infer::Engine engine(model);
  const std::vector<std::string> images = {"005.png", "009.png", "003.png", "011.jpg"};
  std::set<std::vector<int32_t>> different;
  for (const bool again : {false, true}) {
    for (const std::string& image : images) {
      const infer::ImagePrompt prompt = about(model, image);
      EXPECT_EQ(prompt.ids, about(model, images[0]).ids);
      const infer::Generation found = answered(engine, prompt);
      EXPECT_EQ(found.ids, infer::generate(model, prompt, greedy_tokens(12))[0].ids) << image;
      EXPECT_EQ(found.cached_tokens, again ? 128 : 0) << image;
      different.insert(found.ids);
    }
  }
  EXPECT_GT(different.size(), 1);
}

TEST(ImagePrompts, RefuseOtherNumbersOfImagesAndModelsOfTexts) {
  const model::Model model = model::Model::open(kFolder + "llava");
  const auto none = [](size_t) { return media::Image(); };
  expect_error(ErrorKind::InvalidArgument, {"prompt: 1 marks <image> for 0 images"}, [&] {
    infer::image_prompt(model, "<image>", 0, none, text::SpecialTokens::parsed);
  });
  expect_error(ErrorKind::InvalidArgument, {"prompt: 0 marks <image> for 2 images"},
               [&] { infer::image_prompt(model, "x", 2, none, text::SpecialTokens::parsed); });
  const model::Model text = model::Model::open("tests/goldens/starcoder2");
  EXPECT_FALSE(infer::reads_images(text));
  expect_error(ErrorKind::InvalidArgument, {"reads no images"},
               [&] { infer::image_prompt(text, "x", 0, none, text::SpecialTokens::parsed); });
  expect_error(ErrorKind::Unsupported, {"cannot be saved"}, [&] { model.save("out"); });
}

TEST(ImagePrompts, MarksInTheTextOfAUserArePlainText) {
  const model::Model model = model::Model::open(kFolder + "llava");
  const std::string text = model.tokenizer().guarded("a <image> b");
  EXPECT_EQ(infer::image_marks(model, text), 0);
  EXPECT_EQ(infer::image_marks(model, text + "<image>"), 1);
  const auto black = [](size_t) { return media::Image{2, 2, std::vector<uint8_t>(12)}; };
  const infer::ImagePrompt prompt =
      infer::image_prompt(model, text + "<image>", 1, black, text::SpecialTokens::guarded);
  const int32_t token = *model.tokenizer().id_of("<image>");
  EXPECT_EQ(std::count(prompt.ids.begin(), prompt.ids.end(), token), 9);
}

// A prompt that does not fit is refused; one without images would lose its beginning.
TEST(ImagePrompts, AreNotCut) {
  const model::Model model = model::Model::open(kFolder + "llava");
  infer::ImagePrompt prompt = about(model, "005.png");
  prompt.ids.resize(600, 5);
  expect_error(ErrorKind::InvalidArgument, {"prompt: 600 tokens; expected at most 512"},
               [&] { infer::generate(model, prompt, greedy_tokens(1)); });
}

TEST(ImagePrompts, OfTemplatesWithAndWithoutParts) {
  const model::Model model = model::Model::open(kFolder + "llava");
  const auto golden = read_json(kFolder + "llava/expected.json")["chat"];
  text::ChatRequest request;
  request.messages = text::ChatValue::of(golden["messages"]);
  const auto with_parts = text::chat_format(kFolder + "llava", "", model.tokenizer());
  ASSERT_TRUE(with_parts && with_parts->knows_parts);
  EXPECT_EQ(text::render_with_images(*with_parts, request, model.tokenizer(), "<image>"),
            golden["text"].get<std::string>());
  const text::ChatFormat strings{[](const text::ChatRequest& r) {
    std::string text;
    for (const auto& message : nlohmann::json::parse(r.messages.json()))
      text += message["content"].get<std::string>() + "|";
    return text;
  }};
  EXPECT_EQ(text::render_with_images(strings, request, model.tokenizer(), "<image>"),
            "<image>\nWhat is this?|A cat.|And <image>\nthis?|");
}

}  // namespace
}  // namespace fovea
