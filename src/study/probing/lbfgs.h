#pragma once

#include <cstdint>
#include <functional>
#include <vector>

namespace fovea::study {

// Returns f(x) and writes its gradient.
using Objective =
    std::function<double(const std::vector<double>& x, std::vector<double>& gradient)>;

// Moves x to the minimum of a smooth convex function by L-BFGS (Nocedal and Wright 2006, algorithm
// 7.5). Returns whether the largest element of the gradient fell to `tolerance`; if not, no further
// step decreased f.
bool minimise(const Objective& f, double tolerance, std::vector<double>& x);

}  // namespace fovea::study
