#include "probing/cross_validation.h"

#include <algorithm>
#include <numeric>

#include "base/threads.h"
#include "data/permutation.h"

namespace fovea::study {
namespace {

constexpr int64_t kInnerFolds = 3;  // for the choice of C

struct Split {
  std::vector<int32_t> training, held_out;
};

Split split_at(const std::vector<int32_t>& texts, const std::vector<int32_t>& fold, int64_t held) {
  Split split;
  for (size_t i = 0; i < texts.size(); ++i)
    (fold[i] == held ? split.held_out : split.training).push_back(texts[i]);
  return split;
}

// Returns the value of C with the best predictions for texts of held-out inner folds.
double best_c(const FeaturesOf& features, const ProbeFolds& data,
              const std::vector<int32_t>& training, const std::vector<double>& c, uint64_t seed) {
  const std::vector<int32_t> fold = folds_of(data.targets, training, kInnerFolds, seed);
  std::vector<Split> splits(kInnerFolds);
  std::vector<std::shared_ptr<const Features>> made(kInnerFolds);
  parallel_tasks(kInnerFolds, [&](int64_t i) {
    const auto inner = static_cast<size_t>(i);
    splits[inner] = split_at(training, fold, i);
    made[inner] = features(splits[inner].training);
  });
  const int64_t values = std::ssize(c);
  std::vector<double> scores(static_cast<size_t>(kInnerFolds * values));
  parallel_tasks(kInnerFolds * values, [&](int64_t task) {
    const auto inner = static_cast<size_t>(task / values);
    const Split& split = splits[inner];
    const FittedProbe probe(*made[inner], split.training, data.targets,
                            c[static_cast<size_t>(task % values)]);
    for (const int32_t text : split.held_out)
      scores[static_cast<size_t>(task)] += probe.score(*made[inner], text, data.targets);
  });
  for (size_t task = c.size(); task < scores.size(); ++task)
    scores[task % c.size()] += scores[task];
  const auto best = std::max_element(scores.begin(), scores.begin() + values);
  return c[static_cast<size_t>(best - scores.begin())];
}

}  // namespace

std::vector<int32_t> stratified_folds(const std::vector<int32_t>& labels, int64_t folds,
                                      uint64_t seed) {
  std::vector<int32_t> order;
  const train::Permutation shuffled(labels.size(), seed);
  for (size_t i = 0; i < labels.size(); ++i) order.push_back(static_cast<int32_t>(shuffled(i)));
  std::stable_sort(order.begin(), order.end(), [&](int32_t a, int32_t b) {
    return labels[static_cast<size_t>(a)] < labels[static_cast<size_t>(b)];
  });
  std::vector<int32_t> fold(labels.size());
  for (size_t i = 0; i < order.size(); ++i)
    fold[static_cast<size_t>(order[i])] = static_cast<int32_t>(static_cast<int64_t>(i) % folds);
  return fold;
}

std::vector<int32_t> folds_of(const ProbeTargets& targets, const std::vector<int32_t>& texts,
                              int64_t folds, uint64_t seed) {
  std::vector<int32_t> labels(texts.size());
  if (targets.problem == model::ProblemType::single_label)
    for (size_t i = 0; i < texts.size(); ++i)
      labels[i] = targets.labels[static_cast<size_t>(texts[i])];
  return stratified_folds(labels, folds, seed);
}

CrossValidated cross_validate(const FeaturesOf& features, const ProbeFolds& data,
                              const std::vector<double>& c, uint64_t seed,
                              const std::function<void(int64_t fold)>& fold_done) {
  std::vector<int32_t> all(data.fold.size());
  std::iota(all.begin(), all.end(), 0);
  CrossValidated result;
  result.predicted = data.targets;  // each text is overwritten below
  for (int64_t fold = 0; fold < data.folds; ++fold) {
    const Split split = split_at(all, data.fold, fold);
    result.c.push_back(c.size() == 1 ? c[0] : best_c(features, data, split.training, c, seed));
    const auto made = features(split.training);
    const FittedProbe probe(*made, split.training, data.targets, result.c.back());
    result.unfinished += !probe.converged();
    for (const int32_t text : split.held_out) probe.predict(*made, text, result.predicted);
    if (fold_done) fold_done(fold);
  }
  return result;
}

}  // namespace fovea::study
