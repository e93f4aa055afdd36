#pragma once

#include <string>
#include <vector>

#include "metrics/predictions.h"
#include "tensor/tensor.h"

namespace fovea::infer {

// Vectors of length 1 of images and of their texts, row by row.
struct RetrievalVectors {
  int64_t count = 0, width = 0;
  std::vector<float> images, texts;  // [count, width]

  void add(const Tensor& more_images, const Tensor& more_texts);  // [B, width] each
};

// Returns the predictions for the evaluation "retrieval", without the loss: for each image the
// number of texts that are closer to it than its own, and for each text that of images. Equal
// texts are one.
Predictions retrieval_of(const RetrievalVectors& vectors, const std::vector<std::string>& texts);

}  // namespace fovea::infer
