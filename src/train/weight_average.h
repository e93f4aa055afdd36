#pragma once

#include <map>
#include <string>
#include <vector>

#include "checkpoint/snapshot.h"
#include "model/transformer.h"

namespace fovea {

// The mean of a model's weights at a few evaluations: it moves less than the weights do, and is the
// better model while the rate is high (Popel and Bojar 2018, 4.10).
class WeightAverage {
 public:
  WeightAverage(Transformer& model, int64_t most);

  // The trainable weights of the model as they are now. Those of the lowest rank go when there are
  // too many.
  void add(double rank);
  Transformer& mean() { return mean_; }  // of what was added

  // What a snapshot keeps of it, and the way back.
  std::map<std::string, Tensor> state() const;
  std::vector<double> ranks() const;  // "average_ranks" of state.json
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
