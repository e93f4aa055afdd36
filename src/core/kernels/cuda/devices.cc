#include <atomic>
#include <mutex>

#include "base/error.h"
#include "kernels/cuda/backend.h"
#include "kernels/cuda/cuda.h"

namespace fovea {
namespace cuda {
namespace {

std::atomic<Backend*> in_use = nullptr;

const Device& device_of(Backend& backend) {
  static std::mutex adding;
  const std::lock_guard lock(adding);
  static const Device* added = nullptr;
  Backend* const before = in_use;
  check(before == nullptr || before == &backend,
        "device: {} is in use; expected no other of its kind in the process, such as {}",
        before != nullptr ? before->device() : "", backend.device());
  if (added == nullptr) {
    in_use = &backend;
    added =
        &add_device({.name = backend.device(),
                     .kernels = kernels,
                     .allocate = [](size_t& bytes) { return cuda::backend().allocate(bytes); },
                     .free = [](void* block, size_t bytes) { cuda::backend().free(block, bytes); },
                     .copy = [](void* to, const void* from, size_t bytes,
                                CopyKind kind) { cuda::backend().copy(to, from, bytes, kind); }});
  }
  return *added;
}

}  // namespace

Backend& backend() {
  Backend* const found = in_use;
  if (found == nullptr)
    fail(ErrorKind::Internal, "cuda: no device is in use; expected a call of cuda_device() before");
  return *found;
}

}  // namespace cuda

const Device& cuda_device(int number) { return cuda::device_of(cuda::driver_backend(number)); }
const Device& cuda_model_device() { return cuda::device_of(cuda::model_backend()); }

}  // namespace fovea
