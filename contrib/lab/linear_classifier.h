#pragma once

#include <cstdint>
#include <vector>

namespace fovea::lab {

// Rows of numbers, [labels, width], and the class of each.
struct Classified {
  std::vector<float> rows;
  std::vector<int32_t> labels;
};

// Returns the fraction of `unseen` that multinomial logistic regression predicts right. It
// minimises |W|^2 / 2 - sum over the rows of `learned` of log p(label), where |W| does not contain
// the biases, as scikit-learn's LogisticRegression does.
double linear_accuracy(const Classified& learned, const Classified& unseen, int64_t classes);

}  // namespace fovea::lab
