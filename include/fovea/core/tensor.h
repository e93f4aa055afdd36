#pragma once

// Tensors: contiguous, row-major arrays of numbers on a device. Copies and views share memory. A
// tensor may want a gradient; then the ops (ops.h) that use it are recorded, and backward()
// (autograd.h) computes it. All functions throw InvalidArgument if shapes or types do not match,
// and OutOfMemory if there is no memory.

#include <algorithm>
#include <array>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <iterator>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "fovea/core/array.h"

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

// A memory, and the kernels that compute in it. "cpu" is always there.
struct Device;
const Device& cpu_device();
const Device& device_named(std::string_view name);  // throws InvalidArgument if there is none
std::string_view name_of(const Device& device);

class Storage;    // a block of a device's memory, owned or borrowed
struct Gradient;  // the slot that a tensor and its views share

class Tensor {
 public:
  Tensor() = default;  // empty: converts to false

  explicit operator bool() const { return storage_ != nullptr; }
  const Shape& shape() const { return shape_; }
  int64_t dim(int axis) const;  // negative axes count from the end
  int rank() const { return static_cast<int>(shape_.size()); }
  int64_t size() const { return size_; }
  DType dtype() const { return dtype_; }
  size_t bytes() const;

  const Device& device() const;
  uint8_t device_number() const { return device_; }  // 0 = the CPU
  // Returns x on `device`: itself if it is there, else a copy, which has no gradient.
  Tensor to(const Device& device) const;

  // The elements, which a write changes for all tensors that share them. T is float, double,
  // int32_t, int64_t, int8_t or uint8_t. Throws InvalidArgument if this is not the type of dtype()
  // or the elements are not in host memory.
  template <class T>
  std::span<T> span() const;

  // The address in the device's memory, and the same as T*, which throws InvalidArgument if the
  // elements are not in host memory; T is not checked.
  void* data() const { return storage_ ? data_ : nullptr; }
  template <class T>
  T* data_as() const {
    if (device_ != 0) refuse_access();
    return static_cast<T*>(data());
  }

  Tensor view(const Shape& shape) const;  // same elements, new shape; keeps the gradient slot
  Tensor rows(int64_t begin, int64_t end) const;  // a slice of the first axis; has no gradient
  Tensor detach() const;                          // same elements, no gradient

  bool wants_gradient() const { return gradient_ != nullptr; }
  Tensor& want_gradient();  // makes this a leaf whose gradient stays after backward()
  Tensor gradient() const;  // the gradient of a leaf; empty until backward() has reached it
  void clear_gradient() const;

  // How to compute the elements again from other tensors (Saved in autograd.h), so that the tape
  // need not keep them.
  using Recipe = std::function<Tensor()>;
  void set_recipe(Recipe recipe) { recipe_ = std::make_shared<Recipe>(std::move(recipe)); }
  bool has_recipe() const { return recipe_ != nullptr; }

 private:
  friend Tensor empty(const Shape& shape, DType dtype, const Device& device);
  friend Tensor borrow(void* data, const Shape& shape, DType dtype,
                       std::shared_ptr<const void> owner);
  friend class Tape;
  friend class Gradients;
  friend class Saved;

  [[noreturn]] void refuse_access() const;

  std::shared_ptr<Storage> storage_;
  std::shared_ptr<Gradient> gradient_;
  std::shared_ptr<const Recipe> recipe_;
  Shape shape_;
  int64_t size_ = 0;
  char* data_ = nullptr;
  DType dtype_ = DType::f32;
  uint8_t device_ = 0;  // kept if the elements are freed (Saved)
};

// New tensors. Those that an op makes are on the device of its input; those of empty_like() and of
// the functions below are on that of x.
Tensor empty(const Shape& shape, DType dtype = DType::f32,  // uninitialised
             const Device& device = cpu_device());
Tensor empty_like(const Tensor& x);
Tensor zeros(const Shape& shape, DType dtype = DType::f32, const Device& device = cpu_device());
Tensor full(const Shape& shape, double value, DType dtype = DType::f32,
            const Device& device = cpu_device());
// Copies of the values: of floats in `dtype`, and of integers (token ids, targets) as i32.
Tensor tensor_of(std::span<const float> values, const Shape& shape, DType dtype = DType::f32);
Tensor tensor_of(std::initializer_list<float> values, const Shape& shape, DType dtype = DType::f32);
Tensor tensor_of(std::span<const int32_t> values, const Shape& shape);
// Numbers of the normal distribution with mean 0; the same for the same seed and number.
Tensor normal(const Shape& shape, float deviation, uint64_t seed, uint32_t number = 0);
// Borrows host memory, which must not move or end before the tensor and those that share its
// elements; `owner`, if there is one, is kept until then.
Tensor borrow(void* data, const Shape& shape, DType dtype,
              std::shared_ptr<const void> owner = nullptr);
Tensor convert(const Tensor& x, DType dtype);  // a copy in `dtype`; no gradient
Tensor copy(const Tensor& x);
std::vector<float> to_floats(const Tensor& x);
double number_of(const Tensor& x);  // of one element, f32 or f64

// Memory of tensors in host memory.
struct MemoryUse {
  size_t live = 0;  // bytes in tensors now
  size_t peak = 0;  // the largest value of `live` since the last reset
  size_t held = 0;  // bytes in tensors and in blocks that are kept for reuse
};
MemoryUse tensor_memory();
void reset_peak_memory();

}  // namespace fovea
