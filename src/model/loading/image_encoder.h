#pragma once

#include <string>

#include "image/processor.h"
#include "nn/connector.h"
#include "safetensors/tensor_source.h"
#include "transformer/transformer.h"

namespace fovea::model {

// What a language model needs to read images: an encoder of images, whose output becomes
// embeddings of tokens.
struct ImageEncoder {
  Transformer model;
  Connector connector;
  media::ImageProcessor processor;
  int32_t token = -1;  // of an image; its text marks images in a prompt. -1 = "<image>" does,
                       // which is no token
  // Each tile is named by its row and column, and all tokens are framed, as in Idefics3.
  bool names_tiles = false;

  int64_t side() const { return model.spec.input.size; }  // of a tile, in pixels
  int64_t tokens() const;                                 // of a tile
  // A tile of side() x side() pixels.   -> f32 [tokens(), width of the decoder], in host memory
  Tensor operator()(const media::Image& tile) const;
};

void move_to(const Device& device, ImageEncoder& encoder);

// Reads a linear layer of a connector. Throws BadFile, naming `path`, if a tensor is missing or has
// another shape than [out, in].
Linear read_linear(const TensorSource& file, const std::string& name, int64_t out, int64_t in,
                   bool bias, const std::string& path);
// Throws Unsupported, naming `path`, if the processor's images do not fit the encoder, or the
// encoder's patches the connector.
void check_fit(const ImageEncoder& encoder, const std::string& path);

}  // namespace fovea::model
