#pragma once

// The tape: ops record themselves as they run; backward() plays them in reverse. All cleverness
// lives in the ops.

#include <functional>
#include <map>
#include <memory>
#include <vector>

#include "kernels/sum_tree.h"
#include "tensor/tensor.h"

namespace fovea {

class PassGradients;

// What an op's backward writes into: d[x] is the place for x's gradient, with `add` set where one
// is there already, and null where x wants none.
class Gradients {
 public:
  Out operator[](const Tensor& x);
  bool wants(const Tensor& x) const { return x.wants_gradient(); }
  // x's gradient grows by `dx` as it is; dx's memory is shared until somebody writes to it.
  void pass(const Tensor& x, const Tensor& dx);

 private:
  friend class Tape;
  explicit Gradients(PassGradients* passes) : passes_(passes) {}
  Out place(const Tensor& x);
  void finish();  // of one op

  PassGradients* passes_;  // where the gradients of leaves go, if not to their slots

  // An op may hand several places to one kernel. Where inputs are the same tensor, the first has
  // the slot, and the others places of their own, which are added when the op is done.
  std::vector<const Gradient*> given_;
  std::vector<std::pair<Tensor, Tensor>> apart_;  // an input, its place
};

using Backward = std::function<void(const Tensor& dy, Gradients& d)>;

// Records how dy becomes the gradients of `inputs`; returns y, which wants a gradient if one of the
// inputs does and recording is on. A backward must capture its inputs only through `Saved` or as
// what it needs of them.
Tensor record(Tensor y, const std::vector<Tensor>& inputs, Backward backward);

bool recording();

// Turns recording off while it lives (evaluation, generation).
class NoGradient {
 public:
  NoGradient();
  ~NoGradient();
  NoGradient(const NoGradient&) = delete;
  NoGradient& operator=(const NoGradient&) = delete;

 private:
  bool before_;
};

// Plays the tape from `loss` (one element), times `factor`, and empties it. Gradients of leaves add
// up over calls.
void backward(const Tensor& loss, float factor = 1.0f);

// Sums the gradients of leaves over the passes of a step by the tree of sum_tree.h. A leaf that is
// used several times (a tied matrix) has a sum for each use, and these are added at the end, in the
// order in which backward() meets them: so the result does not depend on how the units of a step
// are split into passes.
class PassGradients {
 public:
  void backward(const Tensor& loss, int64_t pass);  // passes ascend
  void finish();                                    // puts the sums where gradient() finds them

 private:
  friend class Gradients;
  struct Use {
    SumTree tree;
    std::vector<Tensor> sums;
    Out next(int64_t pass, const Tensor& x);
    Tensor total();
    void merge();
  };
  struct Leaf {
    std::vector<Use> uses;
    int64_t pass = -1;
    size_t met = 0;  // uses in that pass
  };
  Out place(const std::shared_ptr<Gradient>& slot, const Tensor& x);

  std::map<std::shared_ptr<Gradient>, Leaf> leaves_;
  int64_t pass_ = 0;
};

// Forgets what was recorded (after an error, or a forward pass without backward).
void clear_tape();

// A tensor as a backward keeps it: the elements, or where the op that made them gave a recipe (a
// norm: cheap to compute, large to hold), only the recipe. Shape and gradient slot stay either way.
class Saved {
 public:
  Saved(const Tensor& x);  // NOLINT: implicit, so that a lambda can capture `x = Saved(x)`
  // Only x's gradient slot, for a backward that needs no elements: an addition, a dropout.
  static Saved slot(const Tensor& x);
  Tensor elements() const;                       // computed again if need be
  operator const Tensor&() const { return x_; }  // NOLINT: for d[x]; its data may be gone

 private:
  Tensor x_;
};

}  // namespace fovea
