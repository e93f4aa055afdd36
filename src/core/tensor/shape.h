#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <initializer_list>
#include <iterator>
#include <string>

namespace fovea {

// The extents of a tensor's axes, outermost first; {} is a scalar. Stored inside the tensor: every
// op creates several shapes, and in decoding an allocation would take longer than a small op's
// arithmetic.
class Shape {
 public:
  static constexpr size_t kMostAxes = 8;
  using value_type = int64_t;

  Shape() = default;
  Shape(std::initializer_list<int64_t> extents) : Shape(extents.begin(), extents.end()) {}
  template <std::input_iterator Iterator>
  Shape(Iterator first, Iterator last) {
    for (; first != last; ++first) push_back(*first);
  }

  size_t size() const { return axes_; }
  bool empty() const { return axes_ == 0; }
  int64_t* begin() { return extents_.data(); }
  int64_t* end() { return begin() + axes_; }
  const int64_t* begin() const { return extents_.data(); }
  const int64_t* end() const { return begin() + axes_; }
  int64_t& operator[](size_t axis) { return extents_[axis]; }
  int64_t operator[](size_t axis) const { return extents_[axis]; }
  int64_t& back() { return extents_[axes_ - 1]; }
  int64_t back() const { return extents_[axes_ - 1]; }

  void push_back(int64_t extent) {
    if (axes_ == kMostAxes) refuse_another(extent);
    extents_[axes_++] = extent;
  }

  bool operator==(const Shape& other) const { return std::ranges::equal(*this, other); }

 private:
  [[noreturn]] void refuse_another(int64_t extent) const;

  std::array<int64_t, kMostAxes> extents_ = {};
  size_t axes_ = 0;
};

// Returns the number of elements. Throws InvalidArgument if an extent is negative or there are more
// than 2^59 elements.
int64_t elements(const Shape& shape);
std::string describe(const Shape& shape);  // "[2, 3]"

}  // namespace fovea
