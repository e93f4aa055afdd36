#pragma once

// The GPU device of the tests: the model of a GPU or, if FOVEA_TEST_GPU is set, the GPU of this
// machine; and memory that both the host and its kernels access.

#include <cstdlib>
#include <vector>

#include "kernels/cuda/backend.h"
#include "kernels/cuda/cuda.h"

namespace fovea::test {

inline bool has_gpu() { return std::getenv("FOVEA_TEST_GPU") != nullptr; }

inline const Device& gpu_device() { return has_gpu() ? cuda_device() : cuda_model_device(); }

inline const Kernels& gpu_kernels(DType dtype = DType::f32) { return gpu_device().kernels(dtype); }
inline void wait_for_gpu() {
  (void)gpu_device();
  cuda::backend().wait();
}

// Sets the device of new models during its lifetime.
class DeviceInUse {
 public:
  explicit DeviceInUse(const Device& device) : before_(default_device()) {
    set_default_device(device);
  }
  ~DeviceInUse() { set_default_device(before_); }
  DeviceInUse(const DeviceInUse&) = delete;
  DeviceInUse& operator=(const DeviceInUse&) = delete;

 private:
  const Device& before_;
};

template <class T>
struct SharedAllocator {
  using value_type = T;
  SharedAllocator() = default;
  template <class Other>
  SharedAllocator(const SharedAllocator<Other>&) {}  // NOLINT
  T* allocate(size_t count) {
    (void)gpu_device();
    return static_cast<T*>(cuda::backend().allocate_shared(count * sizeof(T)));
  }
  void deallocate(T* block, size_t) { cuda::backend().free_shared(block); }
  bool operator==(const SharedAllocator&) const { return true; }
};

template <class T>
using SharedVector = std::vector<T, SharedAllocator<T>>;

}  // namespace fovea::test
