#pragma once

// The only type of tensor: contiguous and row-major; copies and views share storage. A tensor may
// want a gradient; then the ops that use it are recorded on the tape (tape.h). Letters: B batch, T
// tokens, H heads, D head width, C width.

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <memory>
#include <string>
#include <vector>

#include "base/dtype.h"
#include "kernels/device.h"
#include "tensor/shape.h"

namespace fovea {

// A block of a device's memory, owned or borrowed. The CPU keeps blocks that their last user
// releases, so that a training step allocates nothing new.
class Storage {
 public:
  Storage(size_t bytes, const Device& device);
  // Refers to host memory of `owner`, which is kept alive.
  Storage(void* borrowed, size_t bytes, std::shared_ptr<const void> owner);
  ~Storage();
  Storage(const Storage&) = delete;
  Storage& operator=(const Storage&) = delete;

  void* data() const { return data_; }
  size_t bytes() const { return bytes_; }

 private:
  void* data_ = nullptr;
  size_t bytes_ = 0;
  const Device* device_ = nullptr;     // of an owned block
  std::shared_ptr<const void> owner_;  // owner of borrowed memory; null = it outlives all tensors
};

MemoryUse tensor_memory();
void reset_peak_memory();
void release_cached_memory();

class Tensor;

// The gradient slot that a tensor and its views share.
struct Gradient;

class Tensor {
 public:
  Tensor() = default;  // empty: converts to false

  explicit operator bool() const { return storage_ != nullptr; }
  const Shape& shape() const { return shape_; }
  int64_t dim(int axis) const;  // negative axes count from the end
  int rank() const { return static_cast<int>(shape_.size()); }
  int64_t size() const { return size_; }
  DType dtype() const { return dtype_; }
  size_t bytes() const { return static_cast<size_t>(size_) * size_of(dtype_); }

  const Device& device() const { return device_of(device_); }
  // Returns x on `device`: itself if it is there, else a copy, which has no gradient.
  Tensor to(const Device& device) const;

  // The address in the device's memory; data_as() is for access to elements, and throws
  // InvalidArgument if they are not in host memory.
  void* data() const { return storage_ ? static_cast<char*>(storage_->data()) + offset_ : nullptr; }
  template <class T>
  T* data_as() const {
    if (device_ != 0) refuse_access();
    return static_cast<T*>(data());
  }

  operator In() const {
    return {data(), dtype_, device_};
  }  // NOLINT: kernels take tensors as inputs
  operator Out() const { return {data(), dtype_, false, device_}; }  // NOLINT: and as outputs
  operator Indices() const {                                         // NOLINT: i32
    return {static_cast<const int32_t*>(data()), device_};
  }

  Tensor view(const Shape& shape) const;  // same elements, new shape; keeps the gradient slot
  Tensor rows(int64_t begin, int64_t end) const;  // a slice of the first axis; has no gradient
  Tensor detach() const;                          // same elements, no gradient

  bool wants_gradient() const { return gradient_ != nullptr; }
  Tensor& want_gradient();  // makes this a leaf whose gradient stays after backward()
  Tensor gradient() const;  // the gradient of a leaf; empty until backward() has reached it
  void clear_gradient() const;

  // How to recompute the elements from other saved tensors; see Saved in tape.h.
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
  size_t offset_ = 0;  // bytes
  DType dtype_ = DType::f32;
  uint8_t device_ = 0;  // kept if the elements are freed (Saved)
};

struct Gradient {
  Tensor value;       // empty = zero
  bool leaf = false;  // kept after backward()
};

// New tensors. Those that an op makes are on the device of its input; those of empty_like() and of
// the functions below are on that of x.
Tensor empty(const Shape& shape, DType dtype = DType::f32,  // uninitialised
             const Device& device = cpu_device());
Tensor empty_like(const Tensor& x);
Tensor zeros(const Shape& shape, DType dtype = DType::f32, const Device& device = cpu_device());
Tensor full(const Shape& shape, double value, DType dtype = DType::f32,
            const Device& device = cpu_device());
Tensor borrow(void* data, const Shape& shape, DType dtype, std::shared_ptr<const void> owner);
Tensor from(const std::vector<float>& values, const Shape& shape, DType dtype = DType::f32);
Tensor convert(const Tensor& x, DType dtype);  // a copy in `dtype`; no gradient
Tensor copy(const Tensor& x);
// Copies `count` bytes of `from`, from byte `from_begin` on, to byte `to_begin` of `to`, on the
// same device.
void copy_bytes(const Tensor& to, int64_t to_begin, const Tensor& from, int64_t from_begin,
                int64_t count);
std::vector<float> to_floats(const Tensor& x);
double number_of(const Tensor& x);  // of one element, f32 or f64

// Returns x as rows: the width is its last axis, the count the product of the others.
Rows rows_of(const Tensor& x);

// Returns the kernels of x's device for its dtype.
const Kernels& kernels(const Tensor& x);

}  // namespace fovea
