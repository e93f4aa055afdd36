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
#include "kernels/kernels.h"
#include "tensor/shape.h"

namespace fovea {

// A block of memory, owned or borrowed. An owned block returns to a cache when its last user
// releases it, so that a training step allocates nothing new.
class Storage {
 public:
  explicit Storage(size_t bytes);
  // Refers to memory of `owner`, which is kept alive.
  Storage(void* borrowed, size_t bytes, std::shared_ptr<const void> owner);
  ~Storage();
  Storage(const Storage&) = delete;
  Storage& operator=(const Storage&) = delete;

  void* data() const { return data_; }
  size_t bytes() const { return bytes_; }

 private:
  void* data_ = nullptr;
  size_t bytes_ = 0;
  bool cached_ = false;                // allocated from the cache
  std::shared_ptr<const void> owner_;  // owner of borrowed memory; null = it outlives all tensors
};

struct MemoryUse {
  size_t live = 0;  // bytes in tensors now
  size_t peak = 0;  // the largest value of `live` since the last reset
  size_t held = 0;  // bytes in tensors and in blocks that are kept for reuse
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

  void* data() const { return storage_ ? static_cast<char*>(storage_->data()) + offset_ : nullptr; }
  template <class T>
  T* data_as() const {
    return static_cast<T*>(data());
  }

  operator In() const { return {data(), dtype_}; }  // NOLINT: kernels take tensors as inputs
  operator Out() const { return {data(), dtype_, false}; }  // NOLINT: and as outputs

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

 private:
  friend Tensor empty(const Shape& shape, DType dtype);
  friend Tensor borrow(void* data, const Shape& shape, DType dtype,
                       std::shared_ptr<const void> owner);
  friend class Tape;
  friend class Gradients;
  friend class Saved;

  std::shared_ptr<Storage> storage_;
  std::shared_ptr<Gradient> gradient_;
  std::shared_ptr<const Recipe> recipe_;
  Shape shape_;
  int64_t size_ = 0;
  size_t offset_ = 0;  // bytes
  DType dtype_ = DType::f32;
};

struct Gradient {
  Tensor value;       // empty = zero
  bool leaf = false;  // kept after backward()
};

Tensor empty(const Shape& shape, DType dtype = DType::f32);  // uninitialised
Tensor empty_like(const Tensor& x);
Tensor zeros(const Shape& shape, DType dtype = DType::f32);
Tensor full(const Shape& shape, double value, DType dtype = DType::f32);
Tensor borrow(void* data, const Shape& shape, DType dtype, std::shared_ptr<const void> owner);
Tensor from(const std::vector<float>& values, const Shape& shape, DType dtype = DType::f32);
Tensor convert(const Tensor& x, DType dtype);  // a copy in `dtype`; no gradient
Tensor copy(const Tensor& x);
std::vector<float> to_floats(const Tensor& x);

// Returns x as rows: the width is its last axis, the count the product of the others.
Rows rows_of(const Tensor& x);

// Returns the kernels for x's dtype.
const Kernels& kernels(const Tensor& x);

}  // namespace fovea
