#pragma once

#include "transformer/transformer.h"

namespace fovea::infer {

// Lets an encoder of images read images of size x size pixels: resizes its table of learned
// positions by cubic interpolation (Keys 1981), as transformers does for DINOv2: with a = -3/4, or,
// if the model has registers, with a = -1/2 and a filter that grows with the reduction. Throws
// InvalidArgument if the patches do not divide the size or the positions are not learned.
void set_image_size(model::Transformer& model, int64_t size);

}  // namespace fovea::infer
