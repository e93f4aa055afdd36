// The device "cuda": one stream of an NVIDIA GPU. Kernels and copies within the device are queued
// there, and the host waits only where it reads.

#include <algorithm>
#include <cstring>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/module.h"
#include "fovea/core/read_file.h"
#include "kernels/cuda/backend.h"
#include "kernels/cuda/cuda.h"
#include "kernels/cuda/driver.h"

namespace fovea::cuda {
namespace {

#define CHECKED(function, ...) check_result(driver()->function(__VA_ARGS__), #function)

constexpr unsigned kStreamOfItsOwn = 1, kNoTiming = 2, kGlobalManaged = 1;
constexpr int kLeastMajor = 8;  // of the compute capability
constexpr const char* kKernelFile = "fovea_cuda.fatbin";

std::string kernels_of_file() {
  const std::string path = module_path(kKernelFile);
  if (path.empty())
    fail(ErrorKind::Unsupported,
         "cuda: {} is not in {}; expected the kernels that ./run build --cuda makes", kKernelFile,
         program_folder());
  return read_file(path);
}

void check_driver() {
  if (driver() != nullptr) return;
  fail(ErrorKind::Unsupported,
       "cuda: libcuda.so.1 is missing or finds no GPU; expected NVIDIA's driver");
}

// Host memory for copies to the device: they are queued, and the caller's memory may change at
// once. A half is used again when the copies from it are done.
class Staging {
 public:
  static constexpr size_t kHalf = 4 << 20;

  Staging() {
    void* block = nullptr;
    CHECKED(cuMemAllocHost, &block, 2 * kHalf);
    memory_ = static_cast<char*>(block);
    for (CUevent& event : used_) CHECKED(cuEventCreate, &event, kNoTiming);
  }
  // Returns `bytes`, at most kHalf, of the memory.
  char* take(size_t bytes, CUstream stream) {
    bytes = (bytes + 63) / 64 * 64;
    if (at_ + bytes > kHalf) {
      CHECKED(cuEventRecord, used_[half_], stream);
      half_ = 1 - half_;
      at_ = 0;
      CHECKED(cuEventSynchronize, used_[half_]);
    }
    at_ += bytes;
    return memory_ + half_ * kHalf + at_ - bytes;
  }

 private:
  char* memory_ = nullptr;
  CUevent used_[2] = {};
  size_t half_ = 0, at_ = 0;
};

class DriverBackend : public Backend {
 public:
  explicit DriverBackend(int number) {
    check_driver();
    int count = 0;
    CHECKED(cuDeviceGetCount, &count);
    check(number < count, "cuda: GPU {}; expected a number below {}", number, count);
    CHECKED(cuDeviceGet, &device_, number);
    int major = 0;
    CHECKED(cuDeviceGetAttribute, &major, kComputeMajor, device_);
    if (major < kLeastMajor)
      fail(ErrorKind::Unsupported,
           "cuda: GPU {} has compute capability {}.x; expected 8.0 or later, that of Ampere",
           number, major);
    const std::string kernels = kernels_of_file();
    CHECKED(cuDevicePrimaryCtxRetain, &context_, device_);
    make_current();
    CHECKED(cuStreamCreate, &stream_, kStreamOfItsOwn);
    CHECKED(cuModuleLoadData, &module_, kernels.data());
    staging_.emplace();
  }

  const char* device() const override { return "cuda"; }

  void* allocate(size_t& bytes) override {
    const std::lock_guard lock(mutex_);
    make_current();
    bytes = rounded(bytes);
    if (auto& same = freed_[bytes]; !same.empty()) {
      void* const block = same.back();
      same.pop_back();
      held_ -= bytes;
      return block;
    }
    CUdeviceptr block = 0;
    CUresult result = driver()->cuMemAlloc(&block, bytes);
    if (result == kOutOfMemory && held_ > 0) {
      release_freed();
      result = driver()->cuMemAlloc(&block, bytes);
    }
    if (result == kOutOfMemory) {
      size_t left = 0, total = 0;
      CHECKED(cuMemGetInfo, &left, &total);
      fail(ErrorKind::OutOfMemory,
           "cuda: cannot allocate {} bytes; expected at most {}, of {} bytes of the device", bytes,
           left, total);
    }
    check_result(result, "cuMemAlloc");
    return reinterpret_cast<void*>(block);
  }

  // Work in the stream may still use the block, but that of its next owner follows it.
  void free(void* block, size_t bytes) override {
    const std::lock_guard lock(mutex_);
    freed_[bytes].push_back(block);
    held_ += bytes;
  }

  void copy(void* to, const void* from, size_t bytes, CopyKind kind) override {
    if (bytes == 0) return;
    const std::lock_guard lock(mutex_);
    make_current();
    if (kind == CopyKind::to_host) {
      CHECKED(cuMemcpyDtoHAsync, to, pointer(from), bytes, stream_);
      CHECKED(cuStreamSynchronize, stream_);
    } else if (kind == CopyKind::within) {
      CHECKED(cuMemcpyDtoDAsync, pointer(to), pointer(from), bytes, stream_);
    } else {
      const auto* next = static_cast<const char*>(from);
      for (size_t done = 0; done < bytes;) {
        const size_t count = std::min(bytes - done, Staging::kHalf);
        char* const staged = staging_->take(count, stream_);
        std::memcpy(staged, next + done, count);
        CHECKED(cuMemcpyHtoDAsync, pointer(static_cast<char*>(to) + done), staged, count, stream_);
        done += count;
      }
    }
  }

  void launch(const Launch& how, std::span<const Argument> arguments) override {
    const std::lock_guard lock(mutex_);
    make_current();
    std::vector<void*> parameters;
    for (const Argument& each : arguments) parameters.push_back(const_cast<void*>(each.data));
    const auto size = [](int64_t count) { return static_cast<unsigned>(count); };
    check_result(
        driver()->cuLaunchKernel(function_of(how), size(how.blocks_x), size(how.blocks_y), 1,
                                 size(how.threads), 1, 1, static_cast<unsigned>(how.shared_bytes),
                                 stream_, parameters.data(), nullptr),
        how.kernel);
  }

  void wait() override {
    const std::lock_guard lock(mutex_);
    make_current();
    CHECKED(cuStreamSynchronize, stream_);
  }

  void* allocate_shared(size_t bytes) override {
    const std::lock_guard lock(mutex_);
    make_current();
    CUdeviceptr block = 0;
    CHECKED(cuMemAllocManaged, &block, std::max<size_t>(bytes, 1), kGlobalManaged);
    return reinterpret_cast<void*>(block);
  }
  void free_shared(void* block) override {
    const std::lock_guard lock(mutex_);
    make_current();
    CHECKED(cuStreamSynchronize, stream_);
    CHECKED(cuMemFree, pointer(block));
  }

 private:
  static CUdeviceptr pointer(const void* block) { return reinterpret_cast<CUdeviceptr>(block); }

  // Blocks of a few sizes, so that a freed one is used again: multiples of an eighth of their power
  // of two.
  static size_t rounded(size_t bytes) {
    size_t unit = 256;
    while (unit * 16 <= bytes) unit *= 2;
    return std::max(unit, (bytes + unit - 1) / unit * unit);
  }

  // The context belongs to a thread; any thread may call.
  void make_current() {
    static thread_local CUcontext current = nullptr;
    if (current == context_) return;
    CHECKED(cuCtxSetCurrent, context_);
    current = context_;
  }

  void release_freed() {
    CHECKED(cuStreamSynchronize, stream_);
    for (auto& [bytes, blocks] : freed_) {
      for (void* const block : blocks) CHECKED(cuMemFree, pointer(block));
      blocks.clear();
    }
    held_ = 0;
  }

  CUfunction function_of(const Launch& how) {
    CUfunction& function = functions_[how.kernel];
    if (function == nullptr) {
      check_result(driver()->cuModuleGetFunction(&function, module_, how.kernel), how.kernel);
      constexpr size_t kAlways = 48 << 10;  // bytes of shared memory that need no request
      if (how.shared_bytes > kAlways)
        CHECKED(cuFuncSetAttribute, function, kMostSharedBytes, static_cast<int>(how.shared_bytes));
    }
    return function;
  }

  std::mutex mutex_;
  CUdevice device_ = 0;
  CUcontext context_ = nullptr;
  CUstream stream_ = nullptr;
  CUmodule module_ = nullptr;
  std::optional<Staging> staging_;
  std::map<size_t, std::vector<void*>> freed_;  // by size
  size_t held_ = 0;                             // bytes of them
  std::map<const char*, CUfunction> functions_;
};

// One line about a GPU.
std::string description_of(int number) {
  CUdevice device = 0;
  CHECKED(cuDeviceGet, &device, number);
  char name[256] = {};
  int major = 0, minor = 0, version = 0;
  size_t bytes = 0;
  CHECKED(cuDeviceGetName, name, static_cast<int>(sizeof name), device);
  CHECKED(cuDeviceGetAttribute, &major, kComputeMajor, device);
  CHECKED(cuDeviceGetAttribute, &minor, kComputeMinor, device);
  CHECKED(cuDeviceTotalMem, &bytes, device);
  CHECKED(cuDriverGetVersion, &version);
  return fmt::format("--device cuda{}: {}, compute capability {}.{}{}, {:.1f} GB, driver {}.{}{}",
                     number == 0 ? "" : fmt::format(":{}", number), name, major, minor,
                     major < kLeastMajor ? " (8.0 or later is needed)" : "",
                     static_cast<double>(bytes) / 1e9, version / 1000, version % 1000 / 10,
                     module_path(kKernelFile).empty()
                         ? "; its kernels are missing: ./run build --cuda makes them"
                         : "");
}

}  // namespace

Backend& driver_backend(int number) {
  static std::mutex opening;
  const std::lock_guard lock(opening);
  static DriverBackend* opened = nullptr;
  static int in_use = -1;
  if (opened == nullptr) {
    opened = new DriverBackend(number);  // never destroyed, like the tensors in its memory
    in_use = number;
  }
  check(number == in_use, "cuda: GPU {} is in use; expected no other in the process", in_use);
  return *opened;
}

std::vector<std::string> descriptions() {
  if (driver() == nullptr) return {"none: libcuda.so.1 is missing, or finds no GPU"};
  int count = 0;
  CHECKED(cuDeviceGetCount, &count);
  std::vector<std::string> lines;
  for (int number = 0; number < count; ++number) lines.push_back(description_of(number));
  return lines;
}

}  // namespace fovea::cuda

std::vector<std::string> fovea::describe_gpus() { return cuda::descriptions(); }
