#pragma once

#include <map>
#include <string>
#include <vector>

#include "checkpoint/snapshot.h"
#include "fovea/train/train.h"
#include "loop/rounded_reduce.h"
#include "nn/parameter.h"
#include "parallel/communicator.h"

namespace fovea::train {

// The outer steps of a job whose ranks take several steps by themselves (Douillard et al. 2023,
// algorithm 1): with the weights w that all ranks had, and d the mean over ranks of w - (their
// weights),
//   u = momentum u + d,  w = w - rate (d + momentum u).
// All functions but restore() are collective.
class LocalSteps {
 public:
  // `parameters` must outlive this object. options.gradients: of the changes that are sent.
  LocalSteps(const TrainOptions& options, const std::vector<model::NamedParameter>& parameters);

  // Takes an outer step. Afterwards the trained parameters are the same on all ranks.
  void synchronise();
  // Adds u to the tensors of a snapshot, and sets the moments among them to their means over the
  // ranks, from which this run and a resumed one continue.
  void add_state(std::map<std::string, Tensor>& tensors);
  void restore(const model::Snapshot& snapshot);

 private:
  Tensor sum_over_ranks(const Tensor& own);

  Communicator& ranks_;
  std::vector<model::NamedParameter> parameters_;
  float rate_, outer_momentum_;
  bool rounds_;
  RoundedReduction rounded_;
  Tensor weights_, momentum_;  // of all parameters, one after another
};

}  // namespace fovea::train
