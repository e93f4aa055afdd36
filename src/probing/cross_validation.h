#pragma once

// Stratified cross-validation of logistic regression.

#include <functional>
#include <memory>
#include <vector>

#include "probing/features.h"

namespace fovea {

// Returns the fold of each text, 0 to folds - 1. The texts of each label, in an order that depends
// on the seed, are dealt to the folds in turn, so that each fold has the same share of every label.
std::vector<int32_t> stratified_folds(const std::vector<int32_t>& labels, int64_t folds,
                                      uint64_t seed);

// Returns features of all texts; what they learn, they learn from the texts in `training`.
using FeaturesOf =
    std::function<std::shared_ptr<const Features>(const std::vector<int32_t>& training)>;

struct LabelledFolds {
  std::vector<int32_t> labels, fold;  // of each text
  int64_t classes = 0, folds = 0;
};

struct CrossValidated {
  std::vector<int32_t> predicted;  // of each text, by the model of the other folds
  std::vector<double> c;           // that was chosen for each fold
  int64_t unfinished = 0;          // number of models whose optimisation did not converge
};

// Predicts the texts of each fold with a model of the other folds. Of several values of C, the
// first with the best accuracy is chosen in a cross-validation of the training texts (three folds).
// `fold_done` is called on the caller's thread.
CrossValidated cross_validate(const FeaturesOf& features, const LabelledFolds& data,
                              const std::vector<double>& c, uint64_t seed,
                              const std::function<void(int64_t fold)>& fold_done = {});

}  // namespace fovea
