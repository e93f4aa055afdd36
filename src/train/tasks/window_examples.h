#pragma once

#include "data/batches.h"
#include "data/masking.h"
#include "train/examples.h"

namespace fovea {

struct WindowOptions {
  int64_t length = 0;  // tokens of text in a window
  int64_t batch = 1;   // windows in one forward pass
  int64_t most = 0;    // windows of the held-out part, read by one evaluation; 0 = all
  uint64_t seed = 0;
};

// Windows of a text; what is asked of them is up to the kinds below.
class WindowExamples : public Examples {
 public:
  WindowExamples(const TokenSpan& training, const TokenSpan& validation,
                 const WindowOptions& options);

  Batch training(int64_t pass) const override;
  double passes_per_epoch() const override;
  int64_t validation_batches() const override;
  Batch validation(int64_t n) const override;

 protected:
  // From windows [rows, length], the tokens that follow each of theirs, and the first one's number
  // in the order of training, or behind all of those one of the held-out part.
  virtual Batch make(const Tensor& ids, const Tensor& next, int64_t first) const = 0;

  WindowOptions options_;

 private:
  Batches batches_;
  std::optional<ValidationBatches> validation_;
};

// Each token is to be told from those before it.
class NextTokenExamples : public WindowExamples {
 public:
  using WindowExamples::WindowExamples;

 protected:
  Batch make(const Tensor& ids, const Tensor& next, int64_t first) const override;
};

// Tokens that were hidden are to be told. `before` and `behind`: special tokens around a window.
class MaskedExamples : public WindowExamples {
 public:
  MaskedExamples(const TokenSpan& training, const TokenSpan& validation,
                 const WindowOptions& options, Masking masking, std::vector<int32_t> before,
                 std::vector<int32_t> behind);

 protected:
  Batch make(const Tensor& ids, const Tensor& next, int64_t first) const override;

 private:
  Masking masking_;
  std::vector<int32_t> before_, behind_;
};

// What was cut out is to be told by a decoder that begins with `start`.
class SpanExamples : public WindowExamples {
 public:
  SpanExamples(const TokenSpan& training, const TokenSpan& validation, const WindowOptions& options,
               SpanCutting cutting, int32_t start);

 protected:
  Batch make(const Tensor& ids, const Tensor& next, int64_t first) const override;

 private:
  SpanCutting cutting_;
  int32_t start_;
};

}  // namespace fovea
