#pragma once

#include <map>
#include <string>
#include <vector>

#include "checkpoint/snapshot.h"
#include "model/transformer.h"

namespace fovea {

// The mean of a model's weights at a few evaluations: it changes less than the weights, and is the
// better model while the learning rate is high (Popel and Bojar 2018, 4.10).
class WeightAverage {
 public:
  WeightAverage(Transformer& model, int64_t most);

  // Adds the current trainable weights of the model. The weights of the lowest rank are dropped if
  // there are too many.
  void add(double rank);
  Transformer& mean() { return mean_; }  // of the added weights

  // Saves and restores its part of a snapshot.
  std::map<std::string, Tensor> state() const;
  std::vector<double> ranks() const;  // as in state.json; or empty
  void restore(const Snapshot& snapshot);

 private:
  struct Weights {
    double rank;
    std::map<std::string, Tensor> by_name;
  };
  void recompute();

  Transformer& model_;
  Transformer mean_;
  size_t most_;
  std::vector<Weights> kept_;  // oldest first
};

}  // namespace fovea
