#pragma once

// Metrics of vectors of sentences: pairs with labels, clusters, pairs of translations.

#include <cstdint>
#include <utility>
#include <vector>

#include "metrics/choices.h"

namespace fovea::infer {

// Pairs of a similarity and whether the two texts belong together.
using LabelledPairs = std::vector<std::pair<double, bool>>;

// The area under the curve of precision and recall: the mean over the pairs that belong together of
// the precision among the pairs that are at least as similar (scikit-learn's
// average_precision_score); 0 without such pairs.
double average_precision(const LabelledPairs& pairs);

// The best accuracy and F1 of "at least as similar as a threshold", and the greatest of their
// thresholds, each between two adjacent similarities, above all or at the lowest one: those of
// sentence-transformers' BinaryClassificationEvaluator. The F1 is 0 without pairs that belong
// together.
struct BestThresholds {
  double accuracy = 0, accuracy_threshold = 0;
  double f1 = 0, f1_threshold = 0;
};
BestThresholds best_thresholds(LabelledPairs pairs);

// The harmonic mean of homogeneity and completeness (Rosenberg and Hirschberg 2007), of pairs of a
// label and a cluster.
double v_measure(const Choices& clusters);

// The F1 of each class, weighted by the number of its labels; 0 without labels.
double weighted_f1(const std::vector<ClassCounts>& counts);

}  // namespace fovea::infer
