#include "fovea/study/inspect_image.h"

#include <algorithm>
#include <numeric>

#include "base/error.h"
#include "base/float_mode.h"
#include "fovea/infer/generate.h"
#include "inspect/inspection.h"
#include "inspect/token_texts.h"
#include "open/model_parts.h"
#include "tensor/tape.h"
#include "vision/image_model_parts.h"

namespace fovea {
namespace {

// Width / height of the part of an image in the square that a processor makes of it.
double ratio_of(const media::Image& image, const media::ImageProcessor& processor) {
  if (!processor.crop.empty() || processor.pads) return 1;
  return static_cast<double>(image.width) / static_cast<double>(std::max<int64_t>(1, image.height));
}

std::vector<study::InspectedToken> tokens_of(const model::InputSpec& input) {
  std::vector<study::InspectedToken> tokens;
  const auto add = [&](std::string text, bool special) {
    tokens.push_back({static_cast<int32_t>(tokens.size()), std::move(text), special});
  };
  for (int64_t i = 0; i < input.class_tokens; ++i)
    add(i == 0 ? "class token" : "distillation token", true);
  for (int64_t i = 0; i < input.registers; ++i) add(fmt::format("register {}", i + 1), true);
  const int64_t side = input.size / input.patch;
  for (int64_t row = 0; row < side; ++row)
    for (int64_t column = 0; column < side; ++column)
      add(fmt::format("row {}, column {}", row + 1, column + 1), false);
  return tokens;
}

int64_t square_root(int64_t count) {
  int64_t side = 0;
  while (side * side < count) ++side;
  return side;
}

// Returns the grids of an image's parts: that of the whole one, and that of its tiles.
std::vector<study::PatchGrid> grids_of(const std::vector<model::PromptImages::Part>& parts) {
  std::vector<study::PatchGrid> grids(1);
  for (const model::PromptImages::Part& part : parts) {
    const int64_t side = square_root(part.count), row = part.row, column = part.column;
    if (row < 0) grids[0] = {side, side, std::vector<int32_t>(static_cast<size_t>(part.count))};
    if (row < 0) std::iota(grids[0].tokens.begin(), grids[0].tokens.end(), part.first);
    if (row == 0 && column == 0) grids.emplace_back();
    if (row >= 0)
      grids[1].rows = (row + 1) * side,
      grids[1].columns = std::max(grids[1].columns, (column + 1) * side);
  }
  if (grids.size() == 1) return grids;
  study::PatchGrid& tiles = grids[1];
  tiles.tokens.resize(static_cast<size_t>(tiles.rows * tiles.columns));
  for (const model::PromptImages::Part& part : parts) {
    const int64_t side = square_root(part.count);
    for (int64_t i = 0; part.row >= 0 && i < part.count; ++i)
      tiles.tokens[static_cast<size_t>((part.row * side + i / side) * tiles.columns +
                                       part.column * side + i % side)] =
          static_cast<int32_t>(part.first + i);
  }
  return grids;
}

}  // namespace

study::ImageInspection study::inspect_image(const infer::ImageModel& model,
                                            const media::Image& image, const std::string& name) {
  const FloatMode mode;
  const infer::ImageModel::Parts& parts = model.parts();
  media::Image fitted = parts.processor.fitted(image, name);
  const int64_t S = parts.transformer.spec.input.size;
  const Tensor pixels = empty({1, 3, S, S});
  parts.processor.normalise(fitted, pixels.data_as<float>());
  auto state = std::make_unique<study::Inspection::State>(parts.transformer, pixels);
  state->image_owner = model;
  state->text = tokens_of(parts.transformer.spec.input);
  const model::InputSpec& input = parts.transformer.spec.input;
  const int64_t side = S / input.patch;
  study::PatchGrid grid{side, side, std::vector<int32_t>(static_cast<size_t>(side * side))};
  std::iota(grid.tokens.begin(), grid.tokens.end(),
            static_cast<int32_t>(input.class_tokens + input.registers));
  return {study::Inspection(std::move(state)),
          std::move(fitted),
          ratio_of(image, parts.processor),
          {std::move(grid)},
          "",
          0};
}

study::ImageInspection study::inspect_image(const model::Model& model,
                                            const infer::ImageQuestion& question,
                                            const media::Image& image, const std::string& name,
                                            int64_t tokens) {
  const FloatMode mode;
  const infer::ImagePrompt prompt = infer::image_prompt(
      model, question.text, 1, [&](size_t) { return image; }, question.special, {name});
  infer::GenerateOptions options;
  options.sampling.temperature = 0;
  options.max_tokens = tokens;
  const infer::Generation answer = infer::generate(model, prompt, options).front();
  std::vector<int32_t> ids = prompt.ids;
  ids.insert(ids.end(), answer.ids.begin(), answer.ids.end());
  model::TokenVectors vectors;
  const NoGradient off;
  prompt.images->add_vectors(0, std::ssize(ids), 0, vectors);
  auto state = std::make_unique<study::Inspection::State>(
      model::parts_of(model).transformer, ids, ids, std::vector<model::HeadIndex>(),
      std::vector<study::NeuronIndex>(), vectors);
  state->owner = model;
  state->text = study::display_tokens(model, ids);
  const std::vector<model::PromptImages::Part>& parts = prompt.images->parts();
  return {study::Inspection(std::move(state)),
          parts.back().pixels,  // the whole image follows its tiles
          ratio_of(image, model::parts_of(model).images->processor),
          grids_of(parts),
          answer.text,
          std::ssize(prompt.ids)};
}

}  // namespace fovea
