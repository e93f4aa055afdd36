#pragma once

#include <cstdint>
#include <utility>
#include <vector>

namespace fovea {

// Labels, each with the chosen output.
using Choices = std::vector<std::pair<int32_t, int32_t>>;

double accuracy(const Choices& choices);  // 0 if `choices` is empty
// Returns macro F1: the mean, over the labels that occur, of the harmonic mean of precision and
// recall.
double mean_f1(const Choices& choices);

}  // namespace fovea
