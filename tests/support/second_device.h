#pragma once

// A second device: the reference kernels over pages that only its kernels and copies can access.
// Any other access to an element of its tensors ends the process, so that a model that runs on it
// accesses the elements of a device only through the device's table.

#include <sys/mman.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <mutex>
#include <vector>

#include "base/error.h"
#include "kernels/device.h"

namespace fovea::test {

class SecondMemory {
 public:
  // Makes the memory accessible during its lifetime, to one caller at a time.
  class Access {
   public:
    Access() : lock_(all().mutex_) { all().protect(PROT_READ | PROT_WRITE); }
    ~Access() { all().protect(PROT_NONE); }
    Access(const Access&) = delete;
    Access& operator=(const Access&) = delete;

   private:
    std::lock_guard<std::mutex> lock_;
  };

  static void* allocate(size_t& bytes) { return all().take(bytes); }
  static void free(void* block, size_t bytes) {
    const std::lock_guard lock(all().mutex_);
    all().freed_[bytes].push_back(block);
  }
  static size_t live_bytes() {
    const std::lock_guard lock(all().mutex_);
    size_t live = all().used_;
    for (const auto& [bytes, blocks] : all().freed_) live -= bytes * blocks.size();
    return live;
  }

 private:
  static constexpr size_t kBytes = size_t{1} << 30, kPage = 4096, kUnit = 64;

  SecondMemory()
      : begin_(static_cast<char*>(mmap(nullptr, kBytes, PROT_NONE,
                                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0))) {}

  static SecondMemory& all() {
    static auto* const memory = new SecondMemory;  // never destroyed, like the tensors in it
    return *memory;
  }

  void protect(int access) {
    if (used_ > 0) mprotect(begin_, (used_ + kPage - 1) / kPage * kPage, access);
  }

  void* take(size_t& bytes) {
    const std::lock_guard lock(mutex_);
    bytes = std::max(kUnit, (bytes + kUnit - 1) / kUnit * kUnit);
    if (std::vector<void*>& same = freed_[bytes]; !same.empty()) {
      void* block = same.back();
      same.pop_back();
      return block;
    }
    if (begin_ == MAP_FAILED || bytes > kBytes - used_)
      fail(ErrorKind::OutOfMemory, "second: cannot allocate {} bytes; expected at most {}", bytes,
           kBytes - used_);
    used_ += bytes;
    return begin_ + used_ - bytes;
  }

  std::mutex mutex_;
  char* begin_;
  size_t used_ = 0;
  std::map<size_t, std::vector<void*>> freed_;  // by size
};

// The function of an entry: that of the reference, with access to the memory.
template <auto entry>
struct OnSecond;
template <KernelName name, class Result, class... Args,
          Kernel<name, Result(Args...)> Kernels::* entry>
struct OnSecond<entry> {
  static Result run(Args... args) {
    const SecondMemory::Access access;
    return (reference_kernels().*entry)(args...);
  }
};

inline const Kernels kSecondTable = {
    .device = "second",
    .gemm = OnSecond<&Kernels::gemm>::run,
    .packed_linear = OnSecond<&Kernels::packed_linear>::run,
    .packed_gemm = OnSecond<&Kernels::packed_gemm>::run,
    .unpack_rows = OnSecond<&Kernels::unpack_rows>::run,
    .convert = OnSecond<&Kernels::convert>::run,
    .add = OnSecond<&Kernels::add>::run,
    .multiply = OnSecond<&Kernels::multiply>::run,
    .scale = OnSecond<&Kernels::scale>::run,
    .shift = OnSecond<&Kernels::shift>::run,
    .softcap = OnSecond<&Kernels::softcap>::run,
    .softcap_backward = OnSecond<&Kernels::softcap_backward>::run,
    .activation = OnSecond<&Kernels::activation>::run,
    .gated_activation = OnSecond<&Kernels::gated_activation>::run,
    .activation_backward = OnSecond<&Kernels::activation_backward>::run,
    .gated_activation_backward = OnSecond<&Kernels::gated_activation_backward>::run,
    .dropout = OnSecond<&Kernels::dropout>::run,
    .sum_rows = OnSecond<&Kernels::sum_rows>::run,
    .layer_norm = OnSecond<&Kernels::layer_norm>::run,
    .layer_norm_backward = OnSecond<&Kernels::layer_norm_backward>::run,
    .rms_norm = OnSecond<&Kernels::rms_norm>::run,
    .rms_norm_backward = OnSecond<&Kernels::rms_norm_backward>::run,
    .scale_columns = OnSecond<&Kernels::scale_columns>::run,
    .dynamic_tanh = OnSecond<&Kernels::dynamic_tanh>::run,
    .dynamic_tanh_backward = OnSecond<&Kernels::dynamic_tanh_backward>::run,
    .softmax = OnSecond<&Kernels::softmax>::run,
    .softmax_backward = OnSecond<&Kernels::softmax_backward>::run,
    .divide_by_sum = OnSecond<&Kernels::divide_by_sum>::run,
    .divide_by_sum_backward = OnSecond<&Kernels::divide_by_sum_backward>::run,
    .rotate = OnSecond<&Kernels::rotate>::run,
    .recurrent_cell = OnSecond<&Kernels::recurrent_cell>::run,
    .recurrent_cell_backward = OnSecond<&Kernels::recurrent_cell_backward>::run,
    .unfold = OnSecond<&Kernels::unfold>::run,
    .unfold_backward = OnSecond<&Kernels::unfold_backward>::run,
    .copy_columns = OnSecond<&Kernels::copy_columns>::run,
    .copy_columns_backward = OnSecond<&Kernels::copy_columns_backward>::run,
    .choose_experts = OnSecond<&Kernels::choose_experts>::run,
    .first_outside = OnSecond<&Kernels::first_outside>::run,
    .group_by_expert = OnSecond<&Kernels::group_by_expert>::run,
    .pick = OnSecond<&Kernels::pick>::run,
    .pick_backward = OnSecond<&Kernels::pick_backward>::run,
    .combine = OnSecond<&Kernels::combine>::run,
    .combine_backward = OnSecond<&Kernels::combine_backward>::run,
    .embedding = OnSecond<&Kernels::embedding>::run,
    .embedding_backward = OnSecond<&Kernels::embedding_backward>::run,
    .attention = OnSecond<&Kernels::attention>::run,
    .attention_paged = OnSecond<&Kernels::attention_paged>::run,
    .put_in_pages = OnSecond<&Kernels::put_in_pages>::run,
    .attention_backward = OnSecond<&Kernels::attention_backward>::run,
    .cross_entropy = OnSecond<&Kernels::cross_entropy>::run,
    .cross_entropy_backward = OnSecond<&Kernels::cross_entropy_backward>::run,
    .kl_divergence = OnSecond<&Kernels::kl_divergence>::run,
    .kl_divergence_backward = OnSecond<&Kernels::kl_divergence_backward>::run,
    .adamw = OnSecond<&Kernels::adamw>::run,
    .sgd = OnSecond<&Kernels::sgd>::run,
    .lion = OnSecond<&Kernels::lion>::run,
    .sum = OnSecond<&Kernels::sum>::run,
    .sum_of_squares = OnSecond<&Kernels::sum_of_squares>::run,
};

inline const Kernels& second_kernels(DType = DType::f32) { return kSecondTable; }

inline void copy_on_second(void* to, const void* from, size_t bytes, CopyKind) {
  const SecondMemory::Access access;
  std::memcpy(to, from, bytes);
}

inline const Device& second_device() {
  static const Device& device = add_device({.name = "second",
                                            .kernels = second_kernels,
                                            .allocate = SecondMemory::allocate,
                                            .free = SecondMemory::free,
                                            .copy = copy_on_second});
  return device;
}

}  // namespace fovea::test
