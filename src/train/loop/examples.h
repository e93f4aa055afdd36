#pragma once

#include "losses/batch.h"

namespace fovea::train {

// The training examples of a run, in an order that depends on the seed, and its held-out examples.
class Examples {
 public:
  virtual ~Examples() = default;

  // Returns the batch of one forward pass in training: a pure function of the seed and the number
  // of the pass.
  virtual Batch training(int64_t pass) const = 0;
  virtual double passes_per_epoch() const = 0;

  // Return the number of batches of the held-out part (0 = there is none), and batch `n`. The
  // batches are the same at every evaluation.
  virtual int64_t validation_batches() const = 0;
  virtual Batch validation(int64_t n) const = 0;

  // The number of sequences (0 for plain text) and of tokens. `predictions` and `bytes` are for
  // bits per byte: the number of predicted tokens and the bytes of their text; if `bytes` is 0,
  // bits per byte are not defined.
  struct Part {
    int64_t sequences = 0, tokens = 0, predictions = 0, bytes = 0;
  };
  Part learnt, held_out;
  uint64_t hash = 0;  // hash of the data
};

}  // namespace fovea::train
