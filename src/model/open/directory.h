#pragma once

// Models by their paths, in any format.

#include "loading/loading.h"

namespace fovea::model {

// Opens a directory or a .gguf file (of a model of texts with images, the decoder), or the base
// of an adapter's directory with this adapter, and adds the weighted sum of `adapters`. A single
// adapter of weight 1 is kept as it is stored if `weights` is `mapped`; `owned` throws Unsupported
// for adapters. Throws BadFile if the files are inconsistent, and Unsupported if the library cannot
// run the model. The message names the file and the key or tensor; one message lists all missing,
// unknown and misshapen tensors.
ModelFiles open_model_files(const std::string& path, Weights weights, const Packing& packing = {},
                            const std::vector<AdapterUse>& adapters = {});

// Like open_model_files() with Weights::owned, also for the decoder of a directory of a model that
// reads images: its encoder of images and its connector are opened by open_image_encoder().
ModelFiles open_decoder_to_train(const std::string& path);

// Returns the memory of the weights of a directory or a .gguf file that is opened with
// Weights::packed. Reads only the config and the headers of the weights.
WeightSizes weight_sizes(const std::string& path, const Packing& packing = {});

// Like open_model_files(), with `head` instead of the head of config.json; the tensors of `head`
// are read if the file has them.
ModelFiles open_with_head(const std::string& path, Weights weights, const Packing& packing,
                          const HeadSpec& head);

}  // namespace fovea::model
