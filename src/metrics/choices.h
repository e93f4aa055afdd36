#pragma once

#include <cstdint>
#include <utility>
#include <vector>

namespace fovea {

// Pairs of a label and the model's choice: the output with the largest logit.
using Choices = std::vector<std::pair<int32_t, int32_t>>;

// Returns the fraction of choices that equal their labels; 0 if `choices` is empty.
double accuracy(const Choices& choices);
// Returns macro F1: the mean, over the labels that occur, of the harmonic mean of precision and
// recall.
double mean_f1(const Choices& choices);

}  // namespace fovea
