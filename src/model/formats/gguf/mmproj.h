#pragma once

#include <memory>
#include <string>

#include "fovea/model/gguf.h"
#include "loading/image_encoder.h"
#include "loading/loading.h"
#include "loading/nested.h"

namespace fovea::model {

// Opens a .gguf file of llama.cpp with an encoder of images and a connector (general.architecture =
// clip; clip.projector_type = mlp, as LLaVA's, or idefics3) for the decoder `text`. Throws BadFile
// if the file is damaged or does not fit the decoder, Unsupported if it has another encoder.
std::shared_ptr<ImageEncoder> open_mmproj(const std::string& path, const Spec& text,
                                          Weights weights, const Packing& packing);

// Writes the encoder of images of a folder with a text model (image_text.h), and its connector, as
// such a file. `dtype` is that of the matrices; fp16 if it is quantised. Throws Unsupported if the
// format cannot express the encoder.
void save_mmproj(const std::string& folder, const Spec& text, const std::string& path,
                 FileDType dtype);
// Returns the path of the encoder beside the .gguf file of its text model: "mmproj-NAME.gguf".
std::string mmproj_beside(const std::string& path);

// The names of the encoder's tensors in such a file, and in the family of the encoder. Older files
// call the layers of the feed-forward part by each other's names (`swapped`).
std::vector<Renaming> mmproj_names(int64_t layers, bool swapped);

}  // namespace fovea::model
