#pragma once

#include <map>
#include <string>
#include <vector>

#include "checkpoint/snapshot.h"
#include "nn/parameter.h"
#include "optim/optimizer.h"
#include "parallel/communicator.h"

namespace fovea::train {

// Returns whether no rank has computed this sum of gradients: each element is -0, which any number
// can be added to without a change, or 0 if rounding errors were added.
bool is_missing(const Tensor& sum, bool rounded = false);

// The optimiser's work and memory, divided among the processes (ranks) of a job, as in stages 1 and
// 2 of ZeRO (Rajbhandari et al. 2020): each rank has the gradients and the moments of its part of
// the elements, updates these weights and sends them to the others. The weights have the bits of
// one process.
class Shards {
 public:
  // The elements of a trained parameter, by rank. A parameter whose rule updates each element by
  // itself is divided into equal parts, if it is large; others belong to one rank.
  struct Shard {
    std::string name;
    model::Parameter* whole;
    std::vector<int64_t> starts;  // rank r has the elements from starts[r] to starts[r + 1]
    model::Parameter own;  // refers to the weights of this rank; not trainable if it has none

    int64_t start(int rank) const { return starts[static_cast<size_t>(rank)]; }
    int64_t size(int rank) const { return start(rank + 1) - start(rank); }
    // Of the elements of a rank: those of a divided parameter are in one row.
    Shape own_shape(int rank) const;
  };

  // `parameters` must outlive this object. `rounded`: whether gradients are.
  Shards(Communicator& ranks, const std::vector<model::NamedParameter>& parameters,
         const OptimizerOptions& options, bool rounded = false);

  // The trained parameters, in their order.
  const std::vector<Shard*>& trained() { return trained_; }
  // What the optimiser of this rank updates; as many parameters as there are.
  std::vector<model::NamedParameter> own();

  // These are collective. `optimizer` is that of own(). The norm is that of all gradients; a
  // parameter that no rank has reached loses its gradient.
  double gradient_norm(const Optimizer& optimizer);
  // Returns "gradient of NAME" for the first gradient that was not finite in the last norm.
  const std::string& bad_gradient() const { return bad_gradient_; }
  void gather_weights();
  // Returns Optimizer::state() of all ranks, as in one process, on rank 0.
  std::map<std::string, Tensor> state(const Optimizer& optimizer);

  // A tensor of this rank's Optimizer::state() as a part of that of one process.
  struct Part {
    int64_t start = 0;  // its first element
    Shape whole;
  };
  Part part_of(const std::string& name, const Tensor& own) const;

 private:
  Communicator& ranks_;
  MomentOptions moments_;
  bool rounded_;
  std::vector<Shard> all_;  // of the parameters
  std::vector<Shard*> trained_;
  std::string bad_gradient_;
};

}  // namespace fovea::train
