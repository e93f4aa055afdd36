#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "fovea/model.h"

namespace fovea {

struct Evaluation {
  double loss = 0;           // mean negative log-likelihood of a token, in nats
  double perplexity = 0;     // exp(loss)
  double bits_per_byte = 0;  // of the text's UTF-8: comparable across tokenizers
  int64_t tokens = 0;        // predicted
  int64_t bytes = 0;         // that those tokens stand for
  int64_t unknown = 0;       // characters that the vocabulary lacks
};

// Reads DATA (text files, folders, JSON lines) in windows of the model's context, each token
// predicted once.
Evaluation evaluate(const Model& model, const std::vector<std::string>& data,
                    const std::function<bool(double fraction)>& progress = {});

}  // namespace fovea
