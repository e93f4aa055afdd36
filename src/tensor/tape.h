#pragma once

// The tape: ops record themselves as they run; backward() plays them in reverse. All cleverness
// lives in the ops.

#include <functional>
#include <vector>

#include "tensor/tensor.h"

namespace fovea {

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
  Out place(const Tensor& x);
  void finish();  // of one op

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
