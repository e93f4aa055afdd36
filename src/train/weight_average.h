#pragma once

#include <deque>
#include <map>
#include <string>

#include "checkpoint/snapshot.h"
#include "model/transformer.h"

namespace fovea {

// The mean of a model's weights at its last few evaluations: it moves less than the weights do, and
// is the better model while the rate is high (Popel and Bojar 2018, 4.10).
class WeightAverage {
 public:
  WeightAverage(Transformer& model, int64_t most);

  void add();                            // the model's weights as they are now
  Transformer& mean() { return mean_; }  // of what was added

  // What a snapshot keeps of it, and the way back.
  std::map<std::string, Tensor> state() const;
  void restore(const Snapshot& snapshot);

 private:
  using Weights = std::map<std::string, Tensor>;
  void recompute();

  Transformer& model_;
  Transformer mean_;
  size_t most_;
  std::deque<Weights> kept_;  // oldest first
};

}  // namespace fovea
