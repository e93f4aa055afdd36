#pragma once

#include <string>

#include "fovea/model/model.h"
#include "fovea/study/inspect_image.h"

namespace fovea::inspector {

// Returns what the page of images shows of a run: the tokens, the pixels that the model sees, and
// the tokens of its parts. `labels`: a classifier's; empty = none.
std::string image_json(const std::string& run, const study::ImageInspection& found,
                       const infer::Classifications& labels);

// Returns the scores of the image, if the model has a head for labels.
infer::Classifications labels_of_image(const infer::ImageModel& model, const media::Image& image);

// Returns the words of the first window of an audio file, its spectrogram, and the part of the
// audio that each word came from, as JSON. Arrays of numbers are in steps of 1/255: of -1 to 1 for
// the spectrogram, and of 0 to the largest for the similarity.
std::string speech_json(const model::Model& model, std::string audio);

}  // namespace fovea::inspector
