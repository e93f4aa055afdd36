#include "metrics/sentence_scores.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include "base/math.h"

namespace fovea::infer {
namespace {

void sort_by_similarity(LabelledPairs& pairs) {
  std::stable_sort(pairs.begin(), pairs.end(),
                   [](const auto& a, const auto& b) { return a.first > b.first; });
}

double count_together(const LabelledPairs& pairs) {
  return static_cast<double>(
      std::count_if(pairs.begin(), pairs.end(), [](const auto& pair) { return pair.second; }));
}

// Returns the sum of -p log p of these counts, where p = count / total.
template <class Counts>
double entropy(const Counts& counts, double total) {
  double sum = 0;
  for (const auto& [of, count] : counts) {
    const double p = static_cast<double>(count) / total;
    sum -= p * math::log(p);
  }
  return sum;
}

}  // namespace

double average_precision(const LabelledPairs& given) {
  LabelledPairs pairs = given;
  sort_by_similarity(pairs);
  const double together = count_together(pairs);
  double sum = 0, right = 0, right_before = 0;
  for (size_t i = 0; i < pairs.size(); ++i) {
    right += pairs[i].second;
    // Equal similarities have one threshold.
    if (i + 1 < pairs.size() && pairs[i + 1].first == pairs[i].first) continue;
    if (right > right_before)
      sum += (right - right_before) / together * (right / static_cast<double>(i + 1));
    right_before = right;
  }
  return sum;
}

BestThresholds best_thresholds(LabelledPairs pairs) {
  if (pairs.empty()) return {};
  sort_by_similarity(pairs);
  const auto count = static_cast<double>(pairs.size());
  const double together = count_together(pairs);
  BestThresholds best;
  best.accuracy = (count - together) / count;
  best.accuracy_threshold = std::nextafter(pairs[0].first, std::numeric_limits<double>::infinity());
  double right = 0;
  for (size_t i = 0; i < pairs.size(); ++i) {
    right += pairs[i].second;
    const bool last = i + 1 == pairs.size();
    if (!last && pairs[i].first == pairs[i + 1].first) continue;
    const auto above = static_cast<double>(i + 1);
    const double below = last ? pairs[i].first : pairs[i + 1].first;
    // A rounded mean must not be the similarity below it.
    const double mean = (pairs[i].first + below) / 2;
    const double threshold = mean == below ? pairs[i].first : mean;
    const double accuracy = (right + (count - together) - (above - right)) / count;
    if (accuracy > best.accuracy) {
      best.accuracy = accuracy;
      best.accuracy_threshold = threshold;
    }
    const double precision = right / above, recall = right / together;
    const double f1 = right > 0 ? 2 * precision * recall / (precision + recall) : 0;
    if (f1 > best.f1) {
      best.f1 = f1;
      best.f1_threshold = threshold;
    }
  }
  return best;
}

double v_measure(const Choices& clusters) {
  std::map<int32_t, int64_t> labels, groups;
  std::map<std::pair<int32_t, int32_t>, int64_t> both;
  for (const auto& [label, group] : clusters) {
    ++labels[label];
    ++groups[group];
    ++both[{label, group}];
  }
  const auto total = static_cast<double>(clusters.size());
  const double of_labels = entropy(labels, total), of_groups = entropy(groups, total);
  const double shared = std::max(0.0, of_labels + of_groups - entropy(both, total));
  const double homogeneity = of_labels > 0 ? shared / of_labels : 1;
  const double completeness = of_groups > 0 ? shared / of_groups : 1;
  const double sum = homogeneity + completeness;
  return sum > 0 ? 2 * homogeneity * completeness / sum : 0;
}

double weighted_f1(const std::vector<ClassCounts>& counts) {
  double sum = 0;
  int64_t labels = 0;
  for (const ClassCounts& c : counts) {
    sum += static_cast<double>(c.labelled) * c.f1();
    labels += c.labelled;
  }
  return labels > 0 ? sum / static_cast<double>(labels) : 0;
}

}  // namespace fovea::infer
