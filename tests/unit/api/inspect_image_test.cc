#include "fovea/study/inspect_image.h"

#include <gtest/gtest.h>

#include <cmath>

#include "fovea/study/circuits.h"
#include "fovea/study/trace.h"
#include "safetensors/safetensors.h"
#include "support/expect_error.h"
#include "support/temporary_folder.h"

namespace fovea {
namespace {

const std::string kGoldenModels = "tests/goldens/", kImage = "tests/goldens/images/009.png";

// Expects the weights of all layers and heads to be those of a trace, attention.{i} [1, H, T, T].
void expect_traced(const study::Inspection& found, const std::string& file) {
  const SafeTensors trace(file);
  const int64_t T = std::ssize(found.tokens());
  int64_t layers = 0;
  for (; trace.find(fmt::format("attention.{}", layers)) != nullptr; ++layers) {
    const Tensor expected = trace.tensor(fmt::format("attention.{}", layers));
    ASSERT_EQ(expected.dim(2), T);
    study::MapQuery query;
    query.layer = layers;
    for (int64_t h = 1; h < expected.dim(1); ++h) query.heads.push_back(h);
    EXPECT_EQ(found.map(query).weights, to_floats(expected)) << "layer " << layers;
  }
  EXPECT_GT(layers, 0);
}

TEST(InspectImage, WeightsOfEncodersAreThoseOfTraces) {
  const TemporaryFolder folder;
  for (const std::string name :
       {"vision/clip", "vision/siglip", "vision/dinov2_small", "deit", "dinov2_registers"}) {
    const infer::ImageModel model =
        infer::ImageModel::open(kGoldenModels + name, model::WeightPrecision::full);
    const study::ImageInspection found =
        study::inspect_image(model, media::read_image(kImage), "image");
    study::TraceOptions options;
    options.image = kImage;
    options.out = folder / "trace.safetensors";
    study::trace(model, options);
    expect_traced(found.inspection, options.out);
    const model::InputSpec& input = model.spec().input;
    const int64_t side = input.size / input.patch, others = input.class_tokens + input.registers;
    ASSERT_EQ(found.grids.size(), 1u);
    EXPECT_EQ(found.grids[0].rows * found.grids[0].columns, side * side) << name;
    EXPECT_EQ(found.grids[0].tokens.front(), others) << name;
    EXPECT_EQ(found.grids[0].tokens.back() + 1, std::ssize(found.inspection.tokens())) << name;
    EXPECT_EQ(found.image.width, input.size) << name;
  }
}

TEST(InspectImage, WeightsOfDecodersAreThoseOfTraces) {
  const TemporaryFolder folder;
  for (const std::string name : {"llava", "idefics3"}) {
    const model::Model model = model::Model::open(kGoldenModels + "image_text/" + name);
    const infer::ImageQuestion question{"What is <image>?"};
    const study::ImageInspection found =
        study::inspect_image(model, question, media::read_image(kImage), "image", 5);
    study::TraceOptions options;
    options.image = kImage;
    options.out = folder / "trace.safetensors";
    for (const study::InspectedToken& token : found.inspection.tokens())
      options.ids.push_back(token.id);
    study::trace(model, options);
    expect_traced(found.inspection, options.out);
    EXPECT_GE(std::ssize(options.ids), found.answer_begin);

    // Without the answer, the ids are those of the text.
    options.ids.clear();
    options.text = question.text;
    options.what = {"logits"};
    for (const study::TracedTensor& tensor : study::trace(model, options)) {
      if (tensor.name == "input_ids") {
        EXPECT_EQ(tensor.shape[1], found.answer_begin);
      }
    }
  }
}

TEST(InspectImage, TilesAreAGridBesideThatOfTheWholeImage) {
  const model::Model model = model::Model::open(kGoldenModels + "image_text/idefics3");
  const study::ImageInspection found =
      study::inspect_image(model, {"<image>?"}, media::read_image(kImage), "image", 1);
  ASSERT_EQ(found.grids.size(), 2u);
  const study::PatchGrid &whole = found.grids[0], &tiles = found.grids[1];
  EXPECT_EQ(whole.rows, whole.columns);
  EXPECT_EQ(tiles.rows % whole.rows, 0);
  EXPECT_EQ(tiles.columns % whole.columns, 0);
  EXPECT_EQ(std::ssize(tiles.tokens), tiles.rows * tiles.columns);
  // The first row consists of the first rows of the tiles; the next tile's follows its names.
  for (int64_t i = 1; i < whole.columns; ++i)
    EXPECT_EQ(tiles.tokens[static_cast<size_t>(i)], tiles.tokens[0] + i);
  EXPECT_EQ(tiles.tokens[static_cast<size_t>(tiles.columns)], tiles.tokens[0] + whole.columns);
  EXPECT_GT(whole.tokens[0], tiles.tokens.back());
}

TEST(InspectImage, RolloutIsTheProductOfTheLayers) {
  const infer::ImageModel model =
      infer::ImageModel::open(kGoldenModels + "vision/clip", model::WeightPrecision::full);
  const study::ImageInspection found =
      study::inspect_image(model, media::read_image(kImage), "image");
  const int64_t T = std::ssize(found.inspection.tokens());
  std::vector<double> row(static_cast<size_t>(T), 0.0);
  row[1] = 1;
  const model::StackSpec& stack = *model.spec().encoder;
  for (int64_t layer = stack.layers; layer-- > 0;) {
    study::MapQuery query;
    query.layer = layer;
    query.mean = true;
    for (int64_t h = 1; h < stack.attention.heads; ++h) query.heads.push_back(h);
    const study::AttentionWeights map = found.inspection.map(query);
    std::vector<double> next;
    for (int64_t s = 0; s < T; ++s) {
      double sum = 0.5 * row[static_cast<size_t>(s)];
      for (int64_t t = 0; t < T; ++t)
        sum +=
            0.5 * row[static_cast<size_t>(t)] * double{map.weights[static_cast<size_t>(t * T + s)]};
      next.push_back(sum);
    }
    row = next;
  }
  const std::vector<float> rollout = found.inspection.rollout(model::AttentionKind::self, 1);
  double sum = 0;
  for (size_t t = 0; t < row.size(); ++t) {
    EXPECT_NEAR(double{rollout[t]}, row[t], 1e-6);
    sum += double{rollout[t]};
  }
  EXPECT_NEAR(sum, 1, 1e-5);
}

TEST(InspectImage, WhatNeedsATextIsRefused) {
  const model::Model model = model::Model::open(kGoldenModels + "image_text/llava");
  const study::ImageInspection found =
      study::inspect_image(model, {"<image>?"}, media::read_image(kImage), "image", 1);
  expect_error(ErrorKind::InvalidArgument, {"walk: the input has images; expected a text"},
               [&] { found.inspection.walk({}); });
  expect_error(ErrorKind::InvalidArgument, {"circuit: the input has images"},
               [&] { study::head_circuit(found.inspection, model::AttentionKind::self, 0, 0, 1); });
  expect_error(ErrorKind::InvalidArgument, {"gradients: the input has images"},
               [&] { found.inspection.sizes(model::AttentionKind::self, true); });
  const infer::ImageModel clip = infer::ImageModel::open(kGoldenModels + "vision/clip");
  study::TraceOptions options;
  options.text = "x";
  options.image = kImage;
  expect_error(ErrorKind::InvalidArgument, {"image: cannot be combined with"},
               [&] { study::trace(clip, options); });
  expect_error(ErrorKind::InvalidArgument, {"reads no images"},
               [&] { study::trace(model::Model::open(kGoldenModels + "starcoder2"), options); });
}

}  // namespace
}  // namespace fovea
