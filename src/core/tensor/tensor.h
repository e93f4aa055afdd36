#pragma once

// Tensors as arguments of kernels, and the memory that they use.

#include <memory>

#include "base/dtype.h"
#include "fovea/core/tensor.h"
#include "kernels/device.h"

namespace fovea {

// The CPU keeps blocks that their last user releases, so that a training step allocates nothing
// new.
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

void release_cached_memory();

struct Gradient {
  Tensor value;       // empty = zero
  bool leaf = false;  // kept after backward()
};

inline In::In(const Tensor& x) : In(x.data(), x.dtype(), x.device_number()) {}
inline Out::Out(const Tensor& y) : Out(y.data(), y.dtype(), false, y.device_number()) {}
inline Indices::Indices(const Tensor& x)
    : Indices(static_cast<const int32_t*>(x.data()), x.device_number()) {}

// Copies `count` bytes of `from`, from byte `from_begin` on, to byte `to_begin` of `to`, on the
// same device.
void copy_bytes(const Tensor& to, int64_t to_begin, const Tensor& from, int64_t from_begin,
                int64_t count);
// Copies `count` elements of `from`, from element `from_begin` on, to element `to_begin` of `to`,
// which has the same dtype; they may be on different devices.
void copy_elements(const Tensor& to, int64_t to_begin, const Tensor& from, int64_t from_begin,
                   int64_t count);

// Returns x as rows: the width is its last axis, the count the product of the others.
Rows rows_of(const Tensor& x);

// Returns the kernels of x's device for its dtype.
const Kernels& kernels(const Tensor& x);

}  // namespace fovea
