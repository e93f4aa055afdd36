#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "tensor/tensor.h"

namespace fovea::train {

// Many sequences of numbers in one array.
class Sequences {
 public:
  void add(const std::vector<int32_t>& numbers) {
    numbers_.insert(numbers_.end(), numbers.begin(), numbers.end());
    ends_.push_back(static_cast<int64_t>(numbers_.size()));
  }
  int64_t count() const { return static_cast<int64_t>(ends_.size()) - 1; }
  int64_t total() const { return ends_.back(); }
  int64_t length(int64_t i) const {
    return ends_[static_cast<size_t>(i) + 1] - ends_[static_cast<size_t>(i)];
  }
  const int32_t* operator[](int64_t i) const {
    return numbers_.data() + ends_[static_cast<size_t>(i)];
  }

  int64_t longest(const std::vector<int64_t>& of) const {
    int64_t most = 0;
    for (const int64_t i : of) most = std::max(most, length(i));
    return most;
  }

  // Returns the sequences `of`, each filled up with `padding` at the end: i32 [of.size(), length].
  Tensor rows(const std::vector<int64_t>& of, int64_t length, int32_t padding) const;
  // The same sequences as a decoder reads them: after `start`, without their last number.
  Tensor shifted_rows(const std::vector<int64_t>& of, int64_t length, int32_t padding,
                      int32_t start) const;

 private:
  std::vector<int32_t> numbers_;
  std::vector<int64_t> ends_ = {0};
};

}  // namespace fovea::train
