#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "fovea/infer/image_model.h"
#include "fovea/infer/image_question.h"
#include "fovea/study/inspect.h"

namespace fovea::study {

// Equal parts of an image, row by row, and the tokens that stand for them.
struct PatchGrid {
  int64_t rows = 0, columns = 0;
  std::vector<int32_t> tokens;  // [rows, columns]
};

// The intermediate results of a model that reads an image; see Inspection.
struct ImageInspection {
  Inspection inspection;
  media::Image image;  // as the model sees it: a square
  double ratio = 1;    // width / height of what is in the square
  // That of the whole image and, if it is divided into tiles, that of all tiles.
  std::vector<PatchGrid> grids;
  std::string answer;        // to a question
  int64_t answer_begin = 0;  // its first token
};

// Runs an encoder of images. The tokens are its class tokens, registers and patches. Throws the
// errors of Inspection and of ImageModel.
ImageInspection inspect_image(const infer::ImageModel& model, const media::Image& image,
                              const std::string& name);
// Runs the decoder of a model of texts and images on a question and its greedy answer of at most
// `tokens` tokens. Throws the errors of image_prompt() and generate() too.
ImageInspection inspect_image(const model::Model& model, const infer::ImageQuestion& question,
                              const media::Image& image, const std::string& name,
                              int64_t tokens = 32);

}  // namespace fovea::study
