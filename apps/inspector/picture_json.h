#pragma once

#include <string>

#include "fovea/study/inspect_picture.h"

namespace fovea::inspector {

// Returns what the page of pictures shows of a run: the tokens, the pixels that the model sees, and
// the tokens of its parts. `labels`: a classifier's; empty = none.
std::string picture_json(const std::string& run, const study::PictureInspection& found,
                         const infer::Classifications& labels);

// Returns the scores of the picture, if the model has a head for labels.
infer::Classifications labels_of_picture(const infer::ImageModel& model, const media::Image& image);

}  // namespace fovea::inspector
