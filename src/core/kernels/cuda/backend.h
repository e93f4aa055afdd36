#pragma once

// What computes the kernels: a GPU (driver_backend.cc), or the model of one (model_backend.cc). The
// rest of the device is the same for both.

#include <array>
#include <cstddef>
#include <span>
#include <tuple>
#include <vector>

#include "kernels/cuda/kernel.h"
#include "kernels/device.h"

namespace fovea::cuda {

// How a kernel is started. launch() sets the kernel and its threads.
struct Launch {
  int blocks_x = 1, blocks_y = 1;
  size_t shared_bytes = 0;
  const char* kernel = "";
  int threads = 1;  // of a block
};
struct Argument {
  const void* data;
  size_t bytes;
};

// Computes kernels and copies in the order of the calls, and later than the calls; see Device.
class Backend {
 public:
  virtual ~Backend() = default;
  virtual const char* device() const = 0;
  virtual void* allocate(size_t& bytes) = 0;
  virtual void free(void* block, size_t bytes) = 0;
  virtual void copy(void* to, const void* from, size_t bytes, CopyKind kind) = 0;
  virtual void launch(const Launch& launch, std::span<const Argument> arguments) = 0;
  virtual void wait() = 0;  // for all kernels and copies
  // Memory that both the host and the device access; the host waits first. For tests.
  virtual void* allocate_shared(size_t bytes) = 0;
  virtual void free_shared(void* block) = 0;
};

// The backend of the device of this process; see cuda_device() and cuda_model_device(). Throws
// Internal if neither was called.
Backend& backend();

Backend& model_backend();
// Opens the GPU of this number at the first call. Throws Unsupported if the driver finds no GPU or
// the kernels are missing, and InvalidArgument for another number than that of the first call.
Backend& driver_backend(int number);

// Starts a kernel. The arguments are converted to the parameters.
template <class... Parameters, class... Given>
void launch(const KernelOf<Parameters...>& kernel, Launch how, const Given&... given) {
  const std::tuple<Parameters...> values(given...);
  how.kernel = kernel.name;
  how.threads = kernel.threads;
  std::apply(
      [&](const Parameters&... each) {
        const std::array<Argument, sizeof...(Parameters)> arguments = {
            // NOLINTNEXTLINE: parameters may be pointers, which are copied as such.
            Argument{static_cast<const void*>(&each), sizeof(Parameters)}...};
        backend().launch(how, arguments);
      },
      values);
}

// A copy of numbers of the host in the memory of the device, for the kernels that are started while
// it exists.
template <class T>
class OnDevice {
 public:
  explicit OnDevice(std::span<const T> numbers) : bytes_(numbers.size_bytes()) {
    if (numbers.empty()) return;
    block_ = backend().allocate(bytes_);
    const auto* const from = static_cast<const void*>(numbers.data());
    backend().copy(block_, from, numbers.size_bytes(), CopyKind::to_device);
  }
  // Room for results.
  explicit OnDevice(size_t count) : bytes_(count * sizeof(T)) {
    block_ = backend().allocate(bytes_);
  }
  ~OnDevice() {
    if (block_ != nullptr) backend().free(block_, bytes_);
  }
  OnDevice(const OnDevice&) = delete;
  OnDevice& operator=(const OnDevice&) = delete;

  T* data() const { return static_cast<T*>(block_); }
  // Waits for the kernels.
  T number() const {
    T found;
    backend().copy(&found, block_, sizeof found, CopyKind::to_host);
    return found;
  }

 private:
  void* block_ = nullptr;
  size_t bytes_;
};

}  // namespace fovea::cuda
