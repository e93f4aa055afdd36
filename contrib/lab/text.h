#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "fovea/core/tensor.h"

namespace fovea::lab {

// Rows of tokens, and their labels.
struct Batch {
  Tensor ids;               // i32 [rows, length]
  Tensor labels;            // i32 [rows, length], or [rows] for one label per row; below 0 = none
  int64_t predictions = 0;  // number of labels that are not below 0
};
// There is one label per row if there are as many labels as rows.
Batch batch_of(const std::vector<int32_t>& ids, const std::vector<int32_t>& labels, int64_t rows);

// A text as tokens, for experiments on text; its last tenth is held out.
class Text {
 public:
  // The tokens are characters, or those of byte-pair encoding with a vocabulary of `bpe`.
  explicit Text(const std::vector<std::string>& paths, int64_t bpe = 0);
  // Returns the same text in tokens of byte-pair encoding.
  Text with_bpe(int64_t vocabulary) const { return Text(paths_, vocabulary); }

  int64_t vocabulary() const { return vocabulary_; }
  uint64_t hash() const { return hash_; }  // of the characters
  std::span<const int32_t> training() const { return std::span(ids_).first(ids_.size() / 10 * 9); }
  std::span<const int32_t> held_out() const { return std::span(ids_).subspan(training().size()); }

  // Returns windows at random offsets, which depend on the seed and the step, with the next tokens
  // as labels.   -> [rows, length]
  Batch training_batch(int64_t step, int64_t rows, int64_t length, uint64_t seed) const;
  // Returns at most `windows` windows, spread evenly over the held-out part, in batches of at most
  // `rows`.
  std::vector<Batch> held_out_batches(int64_t windows, int64_t rows, int64_t length) const;

 private:
  std::vector<std::string> paths_;
  std::vector<int32_t> ids_;
  int64_t vocabulary_ = 0;
  uint64_t hash_ = 0;
};

}  // namespace fovea::lab
