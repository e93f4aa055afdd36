#include "losses/batch_images.h"

#include "base/error.h"
#include "base/threads.h"
#include "tensor/tape.h"

namespace fovea::train {
namespace {

std::vector<media::Image> tiles_of(const BatchImages& images) {
  std::vector<std::vector<media::Image>> read(images.images.size());
  parallel_tasks(std::ssize(read), [&](int64_t i) {
    const auto n = static_cast<size_t>(i);
    read[n] = images.tiles(images.images[n].number);
    check(read[n].size() == images.images[n].tokens.size(), "images: {} tiles; expected {}",
          read[n].size(), images.images[n].tokens.size());
  });
  std::vector<media::Image> all;
  for (auto& of_image : read)
    for (media::Image& tile : of_image) all.push_back(std::move(tile));
  return all;
}

// Runs the encoder on one tile after another, since a tile has enough tokens for products at full
// speed.   -> f32 [tiles, L, C]
Tensor encoded(const model::ImageEncoder& encoder, const std::vector<media::Image>& tiles,
               DType compute) {
  const NoGradient frozen;
  const int64_t S = encoder.side(), N = std::ssize(tiles);
  model::Pass pass;
  pass.compute = compute;
  Tensor all;
  for (int64_t n = 0; n < N; ++n) {
    model::Sequence sequence;
    sequence.signal = empty({1, 3, S, S});
    encoder.processor.normalise(tiles[static_cast<size_t>(n)], sequence.signal.data_as<float>());
    const Tensor hidden = cast(encoder.model.encode(sequence, pass), DType::f32);  // [1, L, C]
    if (!all) all = empty({N, hidden.dim(1), hidden.dim(2)}, DType::f32, hidden.device());
    copy_elements(all, n * hidden.size(), hidden, 0, hidden.size());
  }
  return all;
}

}  // namespace

std::shared_ptr<const BatchImages> images_in_rows(const BatchImages& all, int64_t begin,
                                                  int64_t end) {
  auto part = std::make_shared<BatchImages>(BatchImages{all.encoder, all.tiles, {}});
  for (const BatchImages::Placed& image : all.images) {
    if (image.row < begin || image.row >= end) continue;
    part->images.push_back(image);
    part->images.back().row -= begin;
  }
  if (part->images.empty()) return nullptr;
  return part;
}

model::Sequence with_image_vectors(const Batch& batch, const model::Pass& pass) {
  const BatchImages& images = *batch.images;
  const UnitScope of_encoder({});
  const Tensor hidden = encoded(*images.encoder, tiles_of(images), pass.compute);
  const int64_t T = batch.target.ids.dim(1), rows = rows_of(batch) / batch.units,
                count = images.encoder->tokens();
  std::vector<int32_t> offsets;
  std::vector<int64_t> starts = {0};  // of the units
  const auto begin_units = [&](int64_t until) {
    while (std::ssize(starts) <= until) starts.push_back(std::ssize(offsets));
  };
  for (const BatchImages::Placed& image : images.images) {
    begin_units(image.row / rows);
    for (const int64_t first : image.tokens)
      for (int64_t i = 0; i < count; ++i)
        offsets.push_back(static_cast<int32_t>(image.row * T + first + i));
  }
  begin_units(batch.units);
  // The gradients of the connector are summed by the units of the rows.
  const UnitScope of_rows(
      {batch.units, std::make_shared<const std::vector<int64_t>>(std::move(starts))});
  model::Sequence target = batch.target;
  target.vectors = images.encoder->connector(hidden);
  target.vector_rows = tensor_of(offsets, {std::ssize(offsets)});
  return target;
}

}  // namespace fovea::train
