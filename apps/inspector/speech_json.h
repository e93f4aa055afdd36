#pragma once

#include <string>

#include "fovea/model/model.h"

namespace fovea::inspector {

// Returns the words of the first window of a sound file, its spectrogram, and the part of the sound
// that each word came from, as JSON. Arrays of numbers are in steps of 1/255: of -1 to 1 for the
// spectrogram, and of 0 to the largest for the similarity.
std::string speech_json(const model::Model& model, std::string sound);

}  // namespace fovea::inspector
