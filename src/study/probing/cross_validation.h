#pragma once

// Cross-validation of linear models; stratified for single labels.

#include <functional>
#include <memory>
#include <vector>

#include "probing/fitted_probe.h"

namespace fovea::study {

// Returns the fold of each text, 0 to folds - 1. The texts of each label, in an order that depends
// on the seed, are dealt to the folds in turn, so that each fold has the same share of every label.
std::vector<int32_t> stratified_folds(const std::vector<int32_t>& labels, int64_t folds,
                                      uint64_t seed);

// Returns the folds of some texts: stratified_folds() for single labels; otherwise the texts are
// dealt to the folds in an order that depends on the seed.
std::vector<int32_t> folds_of(const ProbeTargets& targets, const std::vector<int32_t>& texts,
                              int64_t folds, uint64_t seed);

// Returns features of all texts; what they learn, they learn from the texts in `training`.
using FeaturesOf =
    std::function<std::shared_ptr<const Features>(const std::vector<int32_t>& training)>;

struct ProbeFolds {
  ProbeTargets targets;
  std::vector<int32_t> fold;  // of each text
  int64_t folds = 0;
};

struct CrossValidated {
  ProbeTargets predicted;  // by the models of the other folds
  std::vector<double> c;   // that was chosen for each fold
  int64_t unfinished = 0;  // number of models whose optimisation did not converge
};

// Predicts the texts of each fold with a model of the other folds. Of several values of C, the
// first with the best score is chosen in a cross-validation of the training texts (three folds).
// `fold_done` is called on the caller's thread.
CrossValidated cross_validate(const FeaturesOf& features, const ProbeFolds& data,
                              const std::vector<double>& c, uint64_t seed,
                              const std::function<void(int64_t fold)>& fold_done = {});

}  // namespace fovea::study
