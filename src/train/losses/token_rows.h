#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "tensor/tensor.h"

namespace fovea::train {

// The rows of a batch's token ids or labels, while they are filled: [rows, width].
class TokenRows {
 public:
  TokenRows(int64_t rows, int64_t width, int32_t padding = 0)
      : rows_(rows), width_(width), ids_(static_cast<size_t>(rows * width), padding) {}

  int64_t rows() const { return rows_; }
  int64_t width() const { return width_; }
  int64_t size() const { return rows_ * width_; }
  int32_t* row(int64_t r) { return ids_.data() + r * width_; }
  const int32_t* row(int64_t r) const { return ids_.data() + r * width_; }

  Tensor tensor() const { return tensor_of(ids_, {rows_, width_}); }
  // Returns the rows shifted by one token to the right, after `start`, as a decoder reads them.
  TokenRows shifted(int32_t start) const {
    TokenRows shifted(rows_, width_);
    for (int64_t r = 0; r < rows_; ++r) {
      *shifted.row(r) = start;
      std::copy_n(row(r), width_ - 1, shifted.row(r) + 1);
    }
    return shifted;
  }

 private:
  int64_t rows_, width_;
  std::vector<int32_t> ids_;
};

}  // namespace fovea::train
