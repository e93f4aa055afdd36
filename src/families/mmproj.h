#pragma once

#include <memory>
#include <string>

#include "families/directory.h"
#include "families/image_encoder.h"

namespace fovea {

// Opens a .gguf file of llama.cpp with an encoder of images and a connector (general.architecture =
// clip; clip.projector_type = mlp, as LLaVA's, or idefics3) for the decoder `text`. Throws BadFile
// if the file is damaged or does not fit the decoder, Unsupported if it has another encoder.
std::shared_ptr<ImageEncoder> open_mmproj(const std::string& path, const Spec& text,
                                          Weights weights, const Packing& packing);

}  // namespace fovea
