#pragma once

#include <cstdint>
#include <vector>

#include "data/weighted_order.h"

namespace fovea::train {

// Texts that fill rows of equal length. Within a row, each text begins at a multiple of kTile,
// where the attention of a document has the bits of the document alone (Mask in
// fovea/core/op_options.h). An epoch visits the texts in a random order and adds each to the
// current row, or to the next one if it does not fit. Rows are numbered across epochs; the texts of
// a row are a pure function of the seed and its number, but an object keeps the rows of one epoch:
// use it from one thread.
class PackedRows {
 public:
  static constexpr int64_t kTile = 64;

  using Group = WeightedGroup;  // of texts
  // Throws InvalidArgument if there is no text in an epoch, or if a text is longer than a row.
  PackedRows(std::vector<int32_t> lengths, std::vector<Group> groups, int64_t row, uint64_t seed);

  int64_t rows(int64_t epochs) const;                     // in the first epochs
  std::vector<int64_t> operator()(int64_t number) const;  // the texts of row `number`

  // Returns the rows of these texts in their order.
  static std::vector<std::vector<int64_t>> packed(const std::vector<int32_t>& lengths,
                                                  const std::vector<int64_t>& texts, int64_t row);
  // Returns where a text may begin in a row of which `used` tokens are used.
  static int64_t next_start(int64_t used) { return (used + kTile - 1) / kTile * kTile; }

 private:
  std::vector<int64_t> order(int64_t epoch) const;
  void pack(int64_t epoch) const;

  std::vector<int32_t> lengths_;
  std::vector<Group> groups_;
  int64_t row_;
  uint64_t seed_;
  mutable std::vector<int64_t> ends_;  // number of rows up to the end of each epoch so far
  mutable int64_t epoch_ = -1;         // the epoch of rows_
  mutable std::vector<std::vector<int64_t>> rows_;
};

}  // namespace fovea::train
