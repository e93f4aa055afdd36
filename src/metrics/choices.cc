#include "metrics/choices.h"

#include <algorithm>
#include <map>

namespace fovea {

double accuracy(const Choices& choices) {
  const auto right = std::count_if(choices.begin(), choices.end(), [](const auto& choice) {
    return choice.first == choice.second;
  });
  return static_cast<double>(right) / static_cast<double>(std::max<size_t>(1, choices.size()));
}

double mean_f1(const Choices& choices) {
  struct Counts {
    double right = 0, labelled = 0, chosen = 0;
  };
  std::map<int32_t, Counts> counts;
  for (const auto& [label, choice] : choices) {
    counts[label].right += label == choice;
    ++counts[label].labelled;
    ++counts[choice].chosen;
  }
  double sum = 0, labels = 0;
  for (const auto& [label, c] : counts) {
    if (c.labelled == 0) continue;
    sum += 2 * c.right / (c.labelled + c.chosen);
    ++labels;
  }
  return labels > 0 ? sum / labels : 0;
}

}  // namespace fovea
