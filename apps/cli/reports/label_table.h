#pragma once

#include <string>

#include "fovea/infer/metrics.h"

namespace fovea::cli {

// Returns the scores of each label as a table and, of few labels, the confusion matrix.
std::string label_table(const infer::LabelReport& report);

}  // namespace fovea::cli
