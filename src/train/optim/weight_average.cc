#include "optim/weight_average.h"

#include <fmt/format.h>

#include <algorithm>

#include "tensor/host_values.h"

namespace fovea::train {

WeightAverage::WeightAverage(model::Transformer& model, int64_t most)
    : model_(model), mean_(model), most_(static_cast<size_t>(most)) {
  // Parameters that are not trained share their values.
  mean_.each([&](const std::string&, model::Parameter& p) {
    p.value = p.trainable ? copy(p.value.detach()) : p.value.detach();
  });
}

void WeightAverage::add(double rank) {
  if (kept_.size() == most_) {
    const auto lowest = std::min_element(
        kept_.begin(), kept_.end(),
        [](const Weights& one, const Weights& other) { return one.rank < other.rank; });
    if (lowest->rank > rank) return;
    kept_.erase(lowest);
  }
  Weights& now = kept_.emplace_back(Weights{rank, {}});
  for (const auto& [name, parameter] : model::parameters_of(model_))
    if (parameter->trainable) now.by_name[name] = copy(parameter->value.detach());
  recompute();
}

// Computes the mean in double, from the oldest to the newest weights.
void WeightAverage::recompute() {
  mean_.each([&](const std::string& name, model::Parameter& p) {
    if (!kept_.front().by_name.contains(name)) return;
    std::vector<double> sums(static_cast<size_t>(p.value.size()));
    for (const Weights& weights : kept_) {
      const HostValues<float> values(weights.by_name.at(name));
      for (size_t i = 0; i < sums.size(); ++i)
        sums[i] += static_cast<double>(values[static_cast<int64_t>(i)]);
    }
    const Tensor mean = tensor_from<float>(p.value.shape(), [&](int64_t i) {
      return sums[static_cast<size_t>(i)] / static_cast<double>(kept_.size());
    });
    copy_elements(p.value, 0, mean, 0, mean.size());
  });
}

std::map<std::string, Tensor> WeightAverage::state() const {
  std::map<std::string, Tensor> tensors;
  for (size_t i = 0; i < kept_.size(); ++i)
    for (const auto& [name, tensor] : kept_[i].by_name)
      tensors[fmt::format("evaluated.{}.{}", i, name)] = tensor;
  return tensors;
}

std::vector<double> WeightAverage::ranks() const {
  std::vector<double> ranks;
  for (const Weights& weights : kept_) ranks.push_back(weights.rank);
  return ranks;
}

void WeightAverage::restore(const model::Snapshot& snapshot) {
  kept_.clear();
  const auto ranks = snapshot.state.value("average_ranks", std::vector<double>());
  for (size_t i = 0; i < std::min(most_, ranks.size()); ++i) {
    Weights& weights = kept_.emplace_back(Weights{ranks[i], {}});
    for (const auto& [name, parameter] : model::parameters_of(model_)) {
      if (!parameter->trainable) continue;
      weights.by_name[name] =
          copy(snapshot.tensors.tensor(fmt::format("evaluated.{}.{}", i, name)));
    }
  }
  if (!kept_.empty()) recompute();
}

}  // namespace fovea::train
