#pragma once

#include <map>
#include <string>
#include <vector>

#include "checkpoint/snapshot.h"
#include "transformer/transformer.h"

namespace fovea::train {

// The mean of a model's weights at several evaluations. It changes less than the weights, and is a
// better model while the learning rate is high (Popel and Bojar 2018, section 4.10).
class WeightAverage {
 public:
  WeightAverage(model::Transformer& model, int64_t most);

  // Adds the current trainable weights of the model. Of more than `most` sets of weights, the one
  // of the lowest rank is dropped; this may be the new one.
  void add(double rank);
  model::Transformer& mean() { return mean_; }  // mean of the kept weights

  // Save and restore this object's part of a snapshot.
  std::map<std::string, Tensor> state() const;
  std::vector<double> ranks() const;  // ranks of the kept weights, for state.json
  void restore(const model::Snapshot& snapshot);

 private:
  struct Weights {
    double rank;
    std::map<std::string, Tensor> by_name;
  };
  void recompute();

  model::Transformer& model_;
  model::Transformer mean_;
  size_t most_;
  std::vector<Weights> kept_;  // oldest first
};

}  // namespace fovea::train
