#pragma once

#include <optional>

#include "data/batches.h"
#include "data/masking.h"
#include "loop/examples.h"
#include "losses/token_rows.h"

namespace fovea::train {

struct WindowOptions {
  int64_t length = 0;  // tokens of text in a window
  int64_t batch = 1;   // windows in one forward pass
  int64_t most = 0;    // maximum held-out windows per evaluation; 0 = all
  uint64_t seed = 0;
  bool fixed = false;  // the training windows of all epochs are the same
  // The token with which each document of the text begins, except the first one. Tokens attend
  // within their document only. Unset = a window is one document.
  std::optional<int32_t> separator = {};
};

// Windows of a text; derived classes define the labels.
class WindowExamples : public Examples {
 public:
  WindowExamples(const TextMixture& training, const TextMixture& validation,
                 const WindowOptions& options);

  Batch training(int64_t pass) const override;
  double passes_per_epoch() const override;
  int64_t validation_batches() const override;
  Batch validation(int64_t n) const override;

 protected:
  // Builds the batch of the windows `ids` [rows, length]; `next` has the token after each of their
  // tokens. `first` is the number of the first window in the order of training; held-out windows
  // have higher numbers.
  virtual Batch make(const TokenRows& ids, const TokenRows& next, int64_t first) const = 0;

  // Returns the documents of the windows `ids`, in rows with `before` more tokens at the beginning,
  // which belong to the first document; null if windows are not divided.
  std::shared_ptr<const DocumentStarts> documents(const TokenRows& ids, int64_t before = 0) const;

  WindowOptions options_;

 private:
  Batches batches_;
  std::optional<ValidationBatches> validation_;
};

// Predicts each token from the tokens before it.
class NextTokenExamples : public WindowExamples {
 public:
  using WindowExamples::WindowExamples;

 protected:
  Batch make(const TokenRows& ids, const TokenRows& next, int64_t first) const override;
};

// Predicts masked tokens. `before` and `after`: special tokens around a window.
class MaskedExamples : public WindowExamples {
 public:
  MaskedExamples(const TextMixture& training, const TextMixture& validation,
                 const WindowOptions& options, Masking masking, std::vector<int32_t> before,
                 std::vector<int32_t> after);

 protected:
  Batch make(const TokenRows& ids, const TokenRows& next, int64_t first) const override;

 private:
  Masking masking_;
  std::vector<int32_t> before_, after_;
};

// Predicts spans that were cut out. The decoder's input begins with the token `start`.
class SpanExamples : public WindowExamples {
 public:
  SpanExamples(const TextMixture& training, const TextMixture& validation,
               const WindowOptions& options, SpanCutting cutting, int32_t start);

 protected:
  Batch make(const TokenRows& ids, const TokenRows& next, int64_t first) const override;

 private:
  SpanCutting cutting_;
  int32_t start_;
};

}  // namespace fovea::train
