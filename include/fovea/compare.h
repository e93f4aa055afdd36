#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "fovea/model/model.h"

namespace fovea {

// The difference between the predictions of a model and of a reference model (`full`) on one text.
struct Comparison {
  int64_t tokens = 0;  // number of predicted tokens
  double perplexity = 0, full_perplexity = 0;
  double loss_difference = 0;  // log(perplexity / full_perplexity), in nats
  double divergence = 0;       // mean of KL(full || model) over the tokens, in nats
  double flips = 0;            // fraction of tokens for which the most likely next token differs
  // Standard errors, as if tokens were independent: the standard deviation over the tokens, divided
  // by the root of their number; that of a perplexity is the perplexity times that of its loss.
  double perplexity_error = 0, loss_difference_error = 0, divergence_error = 0, flips_error = 0;
  int64_t weight_bytes = 0, full_weight_bytes = 0;
};

// Compares two decoder-only models on text files. `progress`: see evaluate(). Throws
// InvalidArgument if a model has an encoder, if the sizes of the vocabularies differ, or if there
// are fewer than two tokens, BadFile if a file cannot be read, and Failed if `progress` returned
// false.
Comparison compare(const model::Model& model, const model::Model& full,
                   const std::vector<std::string>& data,
                   const std::function<bool(double fraction)>& progress = {});

}  // namespace fovea
