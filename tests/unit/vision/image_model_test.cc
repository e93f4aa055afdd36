// Compares with transformers on the files of tools/goldens/make_vision.py: from files of images
// to vectors and logits.

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>

#include "base/json.h"
#include "base/threads.h"
#include "fovea/infer/image_model.h"
#include "safetensors/safetensors.h"
#include "support/expect_error.h"
#include "support/temporary_folder.h"

namespace fovea::infer {
namespace {

const std::string kVision = "tests/goldens/vision/";

std::vector<std::string> names_in(const std::string& folder, const char* key) {
  return read_json(kVision + folder + "/expected.json")[key].get<std::vector<std::string>>();
}

ImageModel::Source images_of(const std::vector<std::string>& names) {
  return [names](size_t i) { return media::read_image("tests/goldens/images/" + names[i]); };
}

void expect_close(const std::vector<float>& found, const Tensor& expected,
                  const std::string& name) {
  ASSERT_EQ(std::ssize(found), expected.size()) << name;
  double worst = 0, scale = 0;
  for (int64_t i = 0; i < expected.size(); ++i) {
    const double value = expected.data_as<float>()[i];
    worst = std::max(worst, std::abs(double{found[static_cast<size_t>(i)]} - value));
    scale = std::max(scale, std::abs(value));
  }
  EXPECT_LE(worst / scale, 1e-4) << name;
}

class VisionGoldens : public testing::TestWithParam<const char*> {};

TEST_P(VisionGoldens, VectorsOfImagesAreThoseOfTransformers) {
  const std::string folder = kVision + GetParam();
  const ImageModel model = ImageModel::open(folder, model::WeightPrecision::full);
  const auto names = names_in(GetParam(), "images");
  const SafeTensors expected(folder + "/expected.safetensors");
  const Embeddings found = model.embed(names.size(), images_of(names));
  EXPECT_EQ(found.width, model.width());
  expect_close(found.values, expected.tensor("image_embeds"), folder);
}

TEST_P(VisionGoldens, VectorsAreEqualInAnyBatchAndForAnyNumberOfThreads) {
  const ImageModel model = ImageModel::open(kVision + GetParam());
  auto names = names_in(GetParam(), "images");
  for (size_t i = 0; names.size() < 9; ++i) names.push_back(names[i]);
  const int threads = thread_count();
  set_threads(8);  // one batch of all threads
  const std::vector<float> all = model.embed(names.size(), images_of(names)).values;
  for (const auto& [count, batch] : {std::pair{1, 1}, {1, 0}, {2, 0}, {3, 3}, {4, 9}}) {
    set_threads(count);
    ImageOptions options;
    options.batch = batch;
    EXPECT_EQ(model.embed(names.size(), images_of(names), options).values, all)
        << count << " threads, batch " << batch;
  }
  set_threads(threads);
}

INSTANTIATE_TEST_SUITE_P(All, VisionGoldens, testing::Values("clip", "siglip", "dinov2_small"));

class TextGoldens : public testing::TestWithParam<const char*> {};

TEST_P(TextGoldens, VectorsOfTextsAreThoseOfTransformers) {
  const std::string folder = kVision + GetParam();
  const ImageModel model = ImageModel::open(folder, model::WeightPrecision::full);
  ASSERT_TRUE(model.reads_texts());
  const Embeddings found = model.embed_texts(names_in(GetParam(), "texts"));
  const SafeTensors expected(folder + "/expected.safetensors");
  expect_close(found.values, expected.tensor("text_embeds"), folder);
}

TEST_P(TextGoldens, LogitsOfImagesAndTextsAreThoseOfTransformers) {
  const std::string folder = kVision + GetParam();
  const ImageModel model = ImageModel::open(folder, model::WeightPrecision::full);
  const auto names = names_in(GetParam(), "images"), texts = names_in(GetParam(), "texts");
  ImageOptions options;
  options.raw = true;
  options.hypothesis = "{}";
  const Classifications found = model.classify_by(names.size(), images_of(names), texts, options);
  const SafeTensors expected(folder + "/expected.safetensors");
  expect_close(found.scores, expected.tensor("logits_per_image"), folder);
  options.raw = false;
  const Classifications scores = model.classify_by(1, images_of(names), texts, options);
  double sum = 0;
  for (size_t i = 0; i < texts.size(); ++i) {
    const double logit = found.scores[i], sigmoid = 1 / (1 + std::exp(-logit));
    if (GetParam() == std::string("siglip")) {
      EXPECT_NEAR(scores.scores[i], sigmoid, 1e-5);
    }
    sum += scores.scores[i];
  }
  if (GetParam() == std::string("clip")) {
    EXPECT_NEAR(sum, 1, 1e-5);
  }
}

INSTANTIATE_TEST_SUITE_P(All, TextGoldens, testing::Values("clip", "siglip"));

class ClassifierGoldens : public testing::TestWithParam<const char*> {};

TEST_P(ClassifierGoldens, LogitsOfImagesAreThoseOfTransformers) {
  const std::string folder = std::string("tests/goldens/") + GetParam();
  const ImageModel model = ImageModel::open(folder, model::WeightPrecision::full);
  ASSERT_TRUE(model.has_labels());
  const auto source = images_of(names_in("clip", "images"));
  ImageOptions options;
  options.raw = true;
  const SafeTensors expected(folder + "/expected.safetensors");
  expect_close(model.classify(2, source, options).scores, expected.tensor("logits"), folder);
  EXPECT_EQ(model.labels(), (std::vector<std::string>{"LABEL_0", "LABEL_1", "LABEL_2"}));
}

INSTANTIATE_TEST_SUITE_P(All, ClassifierGoldens,
                         testing::Values("deit", "dinov2", "dinov2_registers"));

class TimmGoldens : public testing::TestWithParam<const char*> {};

// tools/goldens/make_timm.py: from files of images to logits or, without a head, vectors.
TEST_P(TimmGoldens, OutputsAreThoseOfTimm) {
  const std::string folder = std::string("tests/goldens/timm/") + GetParam();
  const ImageModel model = ImageModel::open(folder, model::WeightPrecision::full);
  EXPECT_TRUE(ImageModel::reads_images(folder));
  const auto names = read_json(folder + "/expected.json")["images"].get<std::vector<std::string>>();
  const SafeTensors expected(folder + "/expected.safetensors");
  ImageOptions options;
  options.raw = true;
  const auto source = images_of(names);
  expect_close(model.has_labels() ? model.classify(names.size(), source, options).scores
                                  : model.embed(names.size(), source, options).values,
               expected.tensor("output"), folder);
}

INSTANTIATE_TEST_SUITE_P(All, TimmGoldens, testing::Values("vit", "deit", "features"));

TEST(ImageModel, NamesWhatAModelCannotDo) {
  const ImageModel clip = ImageModel::open(kVision + "clip");
  const ImageModel deit = ImageModel::open("tests/goldens/deit");
  const ImageModel::Source none = [](size_t) { return media::Image{1, 1, {0, 0, 0}}; };
  expect_error(ErrorKind::InvalidArgument, {"no head for labels"}, [&] { clip.classify(1, none); });
  expect_error(ErrorKind::InvalidArgument, {"reads no texts"}, [&] { deit.embed_texts({"a"}); });
  ImageOptions options;
  options.hypothesis = "no place";
  expect_error(ErrorKind::InvalidArgument, {"hypothesis", "\"no place\""},
               [&] { clip.classify_by(1, none, {"a"}, options); });
  expect_error(ErrorKind::InvalidArgument, {"labels"}, [&] { clip.classify_by(1, none, {}); });
  options.stop = [] { return true; };
  expect_error(ErrorKind::Failed, {"cancelled by the caller"},
               [&] { deit.classify(1, none, options); });
}

// Copies of CLIP for images may lack the tokenizer.
TEST(ImageModel, OfImagesAndTextsReadsImagesWithoutATokenizer) {
  const TemporaryFolder folder;
  const std::string whole = "tests/goldens/vision/clip";
  for (const char* name : {"config.json", "model.safetensors", "preprocessor_config.json"})
    std::filesystem::copy_file(whole + "/" + name, folder / name);
  const ImageModel model = ImageModel::open(folder.path());
  EXPECT_FALSE(model.reads_texts());
  expect_error(ErrorKind::InvalidArgument, {"reads no texts", "with a tokenizer"},
               [&] { model.embed_texts({"a"}); });
  const auto names = names_in("clip", "images");
  EXPECT_EQ(model.embed(names.size(), images_of(names)).values,
            ImageModel::open(whole).embed(names.size(), images_of(names)).values);
}

TEST(ImageModel, KnowsWhichFoldersReadImages) {
  EXPECT_TRUE(ImageModel::reads_images(kVision + "siglip"));
  EXPECT_TRUE(ImageModel::reads_images("tests/goldens/dinov2"));
  EXPECT_FALSE(ImageModel::reads_images("tests/goldens/gpt2_relu"));
  EXPECT_FALSE(ImageModel::reads_images("tests/goldens"));
}

}  // namespace
}  // namespace fovea::infer
