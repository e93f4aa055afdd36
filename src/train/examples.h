#pragma once

#include "train/batch.h"

namespace fovea {

// What a model learns from, in an order that the seed decides, and what it is measured on.
class Examples {
 public:
  virtual ~Examples() = default;

  // The batch of one forward pass in training: a pure function of the seed and the pass's number.
  virtual Batch training(int64_t pass) const = 0;
  virtual double passes_per_epoch() const = 0;

  // The held-out part in batches, the same at every evaluation; 0 = nothing is held out.
  virtual int64_t validation_batches() const = 0;
  virtual Batch validation(int64_t n) const = 0;

  // Tokens, and the bytes of text that the asked ones stand for (0 = that says nothing here).
  struct Part {
    int64_t sequences = 0, tokens = 0, asked = 0, bytes = 0;
  };
  Part learnt, held_out;
  uint64_t hash = 0;  // of the data
};

}  // namespace fovea
