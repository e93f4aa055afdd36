#pragma once

// Code above the kernels reads and makes elements by these functions, so that it works on any
// device.

#include <span>
#include <type_traits>
#include <utility>
#include <vector>

#include "kernels/device.h"
#include "tensor/tensor.h"

namespace fovea {

// The elements of x in host memory: those of x itself if they are there, else a copy, made by the
// constructor. T is the type of x's dtype, as in Tensor::span().
template <class T>
class HostValues {
 public:
  explicit HostValues(const Tensor& x)
      : x_(x.to(cpu_device())),
        all_(x_.template span<T>()),
        width_(x.rank() == 0 ? 1 : static_cast<size_t>(x.dim(-1))) {}

  std::span<const T> all() const { return all_; }
  // The elements of row r along the last axis.
  std::span<const T> row(int64_t r) const {
    return all_.subspan(static_cast<size_t>(r) * width_, width_);
  }
  const T& operator[](int64_t i) const { return all_[static_cast<size_t>(i)]; }
  int64_t size() const { return std::ssize(all_); }
  auto begin() const { return all_.begin(); }
  auto end() const { return all_.end(); }

 private:
  Tensor x_;
  std::span<const T> all_;
  size_t width_;
};

// Returns a tensor in host memory whose element i, in row-major order, is element(i). Its dtype is
// that of T.
template <class T, class F>
Tensor tensor_from(const Shape& shape, F element) {
  constexpr DType kDType = std::is_same_v<T, float>     ? DType::f32
                           : std::is_same_v<T, double>  ? DType::f64
                           : std::is_same_v<T, int32_t> ? DType::i32
                                                        : DType::i64;
  const Tensor y = empty(shape, kDType);
  int64_t i = 0;
  for (T& each : y.span<T>()) each = static_cast<T>(element(i++));
  return y;
}

// Returns the numbers as a tensor with one axis.
template <class T>
Tensor vector_tensor(const std::vector<T>& numbers) {
  return tensor_from<T>({std::ssize(numbers)},
                        [&](int64_t i) { return numbers[static_cast<size_t>(i)]; });
}

}  // namespace fovea
