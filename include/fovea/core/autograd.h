#pragma once

// Gradients. Ops record themselves on a tape as they run; backward() runs the recorded closures in
// reverse order. Each thread has its own tape.

#include <functional>
#include <utility>
#include <vector>

#include "fovea/core/tensor.h"

namespace fovea {

// Runs the tape backward from `factor` times `loss` (one element), and clears the tape. Gradients
// of leaves accumulate over calls.
void backward(const Tensor& loss, float factor = 1.0f);

// Discards the recorded ops (after an error, or a forward pass without backward).
void clear_tape();

// Turns recording off during its lifetime (evaluation, generation).
class NoGradient {
 public:
  NoGradient();
  ~NoGradient();
  NoGradient(const NoGradient&) = delete;
  NoGradient& operator=(const NoGradient&) = delete;

 private:
  bool before_;
};

bool recording();

// Runs `layer` and returns its results. Of all that the layer records, the tape keeps only the
// function itself: backward() runs it again to record its ops anew (activation checkpointing; Chen
// et al. 2016). The gradients have the same bits as without it, if `layer` returns the same results
// each time. It owns or outlives the tensors that it reads, and depends on no state that changes
// before backward() reaches it.
std::vector<Tensor> recompute(std::function<std::vector<Tensor>()> layer);

// ---- An op of one's own
// ----------------------------------------------------------------------------

struct Out;  // where a kernel writes
class PassGradients;

// The destinations of an op's gradients: x's gradient is written to d[x], which has `add` set if x
// already has a gradient, and is null if x does not want one.
class Gradients {
 public:
  Out operator[](const Tensor& x);
  bool wants(const Tensor& x) const { return x.wants_gradient(); }
  // Adds `dx` to x's gradient, which may share dx's memory until one of them is written.
  void pass(const Tensor& x, const Tensor& dx);

 private:
  friend class Tape;
  explicit Gradients(PassGradients* passes) : passes_(passes) {}
  Out destination(const Tensor& x);
  void finish();  // ends one op

  PassGradients* passes_;  // receives the gradients of leaves, instead of their slots; may be null

  // An op may pass several destinations to one kernel. If several inputs are the same tensor, the
  // first uses the slot and the others use temporaries, which are added at the end of the op.
  std::vector<const Gradient*> given_;
  std::vector<std::pair<Tensor, Tensor>> apart_;  // (input, temporary)
};

using Backward = std::function<void(const Tensor& dy, Gradients& d)>;

// Records how dy becomes the gradients of `inputs`. Returns y, which wants a gradient if one of the
// inputs does and recording is on. `backward` should capture inputs as `Saved`, so that elements
// that can be recomputed are not kept.
Tensor record(Tensor y, const std::vector<Tensor>& inputs, Backward backward);

// A tensor kept for the backward pass: its elements, or only a recipe if its op has one (such as a
// norm, which is cheap to compute and large to store). The shape and the gradient slot are kept in
// both cases.
class Saved {
 public:
  explicit Saved(const Tensor& x);
  // Keeps only x's gradient slot, for ops whose gradient needs no elements, such as addition and
  // dropout.
  static Saved slot(const Tensor& x);
  Tensor elements() const;                       // recomputed if necessary
  operator const Tensor&() const { return x_; }  // NOLINT: for d[x]; its elements may be freed

 private:
  Tensor x_;
};

}  // namespace fovea
