#include "train/weight_average.h"

#include <fmt/format.h>

namespace fovea {

WeightAverage::WeightAverage(Transformer& model, int64_t most)
    : model_(model), mean_(model.spec), most_(static_cast<size_t>(most)) {
  Weights now;
  model.each([&](const std::string& name, Parameter& p) { now[name] = p.value; });
  mean_.each([&](const std::string& name, Parameter& p) { p.value = copy(now.at(name).detach()); });
}

void WeightAverage::add() {
  Weights now;
  model_.each([&](const std::string& name, Parameter& p) { now[name] = copy(p.value.detach()); });
  kept_.push_back(std::move(now));
  if (kept_.size() > most_) kept_.pop_front();
  recompute();
}

// In double, from the oldest to the newest.
void WeightAverage::recompute() {
  mean_.each([&](const std::string& name, Parameter& p) {
    float* out = p.value.data_as<float>();
    for (int64_t i = 0; i < p.value.size(); ++i) {
      double sum = 0;
      for (const Weights& weights : kept_)
        sum += static_cast<double>(weights.at(name).data_as<float>()[i]);
      out[i] = static_cast<float>(sum / static_cast<double>(kept_.size()));
    }
  });
}

std::map<std::string, Tensor> WeightAverage::state() const {
  std::map<std::string, Tensor> tensors;
  for (size_t i = 0; i < kept_.size(); ++i)
    for (const auto& [name, tensor] : kept_[i])
      tensors[fmt::format("evaluated.{}.{}", i, name)] = tensor;
  return tensors;
}

void WeightAverage::restore(const Snapshot& snapshot) {
  kept_.clear();
  for (size_t i = 0; i < most_; ++i) {
    Weights weights;
    model_.each([&](const std::string& name, Parameter&) {
      const std::string stored = fmt::format("evaluated.{}.{}", i, name);
      if (snapshot.tensors.find(stored) != nullptr)
        weights[name] = copy(snapshot.tensors.tensor(stored));
    });
    if (!weights.empty()) kept_.push_back(std::move(weights));
  }
  if (!kept_.empty()) recompute();
}

}  // namespace fovea
