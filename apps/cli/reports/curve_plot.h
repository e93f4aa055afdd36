#pragma once

#include <string>
#include <utility>
#include <vector>

#include "fovea/train/runs.h"

namespace fovea::cli {

// Returns a plot of curves over steps in lines of text of at most `width` columns: each point of
// the n-th curve is the n-th letter, and a legend follows.
std::string curve_plot(const std::vector<std::pair<std::string, train::Curve>>& curves,
                       const std::string& title, int width, bool utf8);

}  // namespace fovea::cli
