#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "fovea/model.h"

namespace fovea {

// How far a model's predictions are from another's, the full one's, on the same text.
struct Comparison {
  int64_t tokens = 0;  // predicted
  double perplexity = 0, full_perplexity = 0;
  double divergence = 0;  // mean over tokens of KL(full || model), in nats
  double flips = 0;       // share of tokens whose likeliest successor is another
  int64_t weight_bytes = 0, full_weight_bytes = 0;
};

// Reads DATA as evaluate() does. InvalidArgument where the models' vocabularies differ.
Comparison compare(const Model& model, const Model& full, const std::vector<std::string>& data,
                   const std::function<bool(double fraction)>& progress = {});

}  // namespace fovea
