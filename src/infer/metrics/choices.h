#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace fovea::infer {

// Pairs of a label and the model's choice: the output with the largest logit.
using Choices = std::vector<std::pair<int32_t, int32_t>>;

// For each of n texts and each of `width` labels, whether the text has the label, and whether the
// model predicts it (the probability is above 1/2): [n, width].
struct LabelSets {
  int64_t width = 0;
  std::vector<uint8_t> labelled = {}, chosen = {};
};

// How often a class is right, is a label, and is chosen.
struct ClassCounts {
  int64_t right = 0, labelled = 0, chosen = 0;

  // 0 where a quotient is undefined, as scikit-learn's zero_division=0.
  double precision() const { return quotient(right, chosen); }
  double recall() const { return quotient(right, labelled); }
  double f1() const { return quotient(2 * right, labelled + chosen); }

 private:
  static double quotient(int64_t a, int64_t b) {
    return b > 0 ? static_cast<double>(a) / static_cast<double>(b) : 0;
  }
};

// Returns the fraction of choices that equal their labels; 0 if `choices` is empty.
double accuracy(const Choices& choices);
// Returns the fraction of texts whose labels are all predicted right; 0 if there is no text.
double accuracy(const LabelSets& sets);

// Return the counts of each class; those of Choices end at the last class that occurs.
std::vector<ClassCounts> counts_of(const Choices& choices);
std::vector<ClassCounts> counts_of(const LabelSets& sets);

// Macro F1: the mean of the F1 of the classes. Classes that are neither a label nor chosen are left
// out; with `all`, they count as 0.
double macro_f1(const std::vector<ClassCounts>& counts, bool all = false);
// Micro averages: the scores of all classes together.
ClassCounts total_of(const std::vector<ClassCounts>& counts);

// Returns the correlation coefficient of labels and choices (Matthews 1975; for several classes
// Gorodkin 2004); 0 if all labels or all choices are equal.
double matthews(const Choices& choices);

}  // namespace fovea::infer
