#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "loading/image_encoder.h"
#include "losses/batch.h"

namespace fovea::train {

// The images of a batch. Each tile of one has consecutive tokens in a row of Batch::target, whose
// embeddings are replaced by the vectors of the encoder of images and its connector. The encoder is
// not trained.
struct BatchImages {
  struct Placed {
    size_t number;                // of the image
    int64_t row;                  // of Batch::target
    std::vector<int64_t> tokens;  // the first one of each tile, in the row
  };
  std::shared_ptr<const model::ImageEncoder> encoder;
  std::function<std::vector<media::Image>(size_t number)> tiles;  // from any thread
  std::vector<Placed> images;  // in ascending order of their tokens
};

// Returns the images in rows [begin, end) of a batch; null if there are none.
std::shared_ptr<const BatchImages> images_in_rows(const BatchImages& all, int64_t begin,
                                                  int64_t end);

// Returns batch.target with the vectors of its images.
model::Sequence with_image_vectors(const Batch& batch, const model::Pass& pass);

}  // namespace fovea::train
