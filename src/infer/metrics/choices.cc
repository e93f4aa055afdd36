#include "metrics/choices.h"

#include <algorithm>
#include <cmath>

namespace fovea::infer {

double accuracy(const Choices& choices) {
  const auto right = std::count_if(choices.begin(), choices.end(), [](const auto& choice) {
    return choice.first == choice.second;
  });
  return static_cast<double>(right) / static_cast<double>(std::max<size_t>(1, choices.size()));
}

double accuracy(const LabelSets& sets) {
  const int64_t texts = sets.width > 0 ? std::ssize(sets.labelled) / sets.width : 0;
  int64_t right = 0;
  for (int64_t i = 0; i < texts; ++i) {
    const auto begin = sets.labelled.begin() + i * sets.width;
    right += std::equal(begin, begin + sets.width, sets.chosen.begin() + i * sets.width);
  }
  return static_cast<double>(right) / static_cast<double>(std::max<int64_t>(1, texts));
}

std::vector<ClassCounts> counts_of(const Choices& choices) {
  int32_t last = -1;
  for (const auto& [label, choice] : choices) last = std::max({last, label, choice});
  std::vector<ClassCounts> counts(static_cast<size_t>(last + 1));
  for (const auto& [label, choice] : choices) {
    counts[static_cast<size_t>(label)].right += label == choice;
    ++counts[static_cast<size_t>(label)].labelled;
    ++counts[static_cast<size_t>(choice)].chosen;
  }
  return counts;
}

std::vector<ClassCounts> counts_of(const LabelSets& sets) {
  std::vector<ClassCounts> counts(static_cast<size_t>(sets.width));
  for (size_t i = 0; i < sets.labelled.size(); ++i) {
    ClassCounts& c = counts[i % counts.size()];
    c.right += sets.labelled[i] & sets.chosen[i];
    c.labelled += sets.labelled[i];
    c.chosen += sets.chosen[i];
  }
  return counts;
}

double macro_f1(const std::vector<ClassCounts>& counts, bool all) {
  double sum = 0, classes = 0;
  for (const ClassCounts& c : counts) {
    if (!all && c.labelled == 0 && c.chosen == 0) continue;
    sum += c.f1();
    ++classes;
  }
  return classes > 0 ? sum / classes : 0;
}

ClassCounts total_of(const std::vector<ClassCounts>& counts) {
  ClassCounts total;
  for (const ClassCounts& c : counts) {
    total.right += c.right;
    total.labelled += c.labelled;
    total.chosen += c.chosen;
  }
  return total;
}

// (c s - sum of p t) / sqrt((s^2 - sum of p^2) (s^2 - sum of t^2)), where s is the number of texts,
// c of right choices, and t and p are the numbers of labels and of choices of each class.
double matthews(const Choices& choices) {
  double right = 0, both = 0, chosen = 0, labelled = 0;
  const auto texts = static_cast<double>(choices.size());
  for (const ClassCounts& c : counts_of(choices)) {
    const auto t = static_cast<double>(c.labelled), p = static_cast<double>(c.chosen);
    right += static_cast<double>(c.right);
    both += p * t;
    chosen += p * p;
    labelled += t * t;
  }
  const double spread = (texts * texts - chosen) * (texts * texts - labelled);
  return spread > 0 ? (right * texts - both) / std::sqrt(spread) : 0;
}

}  // namespace fovea::infer
