// The model of a GPU as a Backend. Its memory can be accessed only while its
// kernels and copies run, and each block of memory lies between guards. Kernels and copies are
// computed as late as possible, so that the host sees other numbers where it does not wait.

#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string_view>
#include <tuple>
#include <utility>

#include "base/error.h"
#include "kernels/cuda/backend.h"
#include "kernels/cuda/cuda.h"
#include "kernels/cuda/model.h"

namespace fovea::cuda {
namespace {

// Returns a call of the function of a kernel with copies of the arguments.
template <class... Parameters>
std::function<void()> call_of(void (*function)(Parameters...), std::span<const Argument> given) {
  check(given.size() == sizeof...(Parameters), "cuda-model: {} arguments; expected {}",
        given.size(), sizeof...(Parameters));
  const auto values = [&]<size_t... i>(std::index_sequence<i...>) {
    return std::tuple<Parameters...>(*static_cast<const Parameters*>(given[i].data)...);
  }(std::index_sequence_for<Parameters...>());
  return [function, values] { std::apply(function, values); };
}

std::function<void()> call_of(std::string_view kernel, std::span<const Argument> arguments) {
#define GPU_KERNEL(name, ...) \
  if (kernel == #name) return call_of(&model_kernels::name, arguments);
#include "kernels/cuda/kernels.inc"
#undef GPU_KERNEL
  fail(ErrorKind::Internal, "cuda-model: no kernel {}; expected one of kernels.inc", kernel);
}

constexpr size_t kBytes = size_t{4} << 30;  // of addresses; pages take memory when they are used
constexpr size_t kUnit = 64, kGuard = 64;

// The numbers of a guard: a NaN that differs from block to block, so that copying one is found.
uint32_t guard_of(const char* block) {
  return 0x7fc00000 | (static_cast<uint32_t>(reinterpret_cast<uintptr_t>(block) / kUnit) & 0xfffff);
}
void set_guard(char* to, const char* block) {
  for (size_t i = 0; i < kGuard; i += sizeof(uint32_t))
    std::memcpy(to + i, std::to_array({guard_of(block)}).data(), sizeof(uint32_t));
}
bool intact(const char* guard, const char* block) {
  std::array<char, kGuard> expected{};
  set_guard(expected.data(), block);
  return std::memcmp(guard, expected.data(), kGuard) == 0;
}

class ModelBackend : public Backend {
 public:
  ModelBackend()
      : begin_(static_cast<char*>(mmap(nullptr, kBytes, PROT_NONE,
                                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0))) {}

  const char* device() const override { return "cuda-model"; }

  void* allocate(size_t& bytes) override {
    const std::lock_guard lock(mutex_);
    bytes = std::max(kUnit, (bytes + kUnit - 1) / kUnit * kUnit);
    if (auto& same = freed_[bytes]; !same.empty()) {
      char* const block = same.back();
      same.pop_back();
      blocks_[block] = bytes;
      return block;
    }
    if (begin_ == MAP_FAILED || bytes + 2 * kGuard > kBytes - used_)
      fail(ErrorKind::OutOfMemory, "cuda-model: cannot allocate {} bytes; expected at most {}",
           bytes, kBytes - used_);
    char* const block = begin_ + used_ + kGuard;
    used_ += bytes + 2 * kGuard;
    const Access access(*this);
    set_guard(block - kGuard, block);
    set_guard(block + bytes, block);
    blocks_[block] = bytes;
    return block;
  }

  // Queued kernels may still use the block, but those of its next owner follow them.
  void free(void* block, size_t bytes) override {
    const std::lock_guard lock(mutex_);
    blocks_.erase(static_cast<char*>(block));
    freed_[bytes].push_back(static_cast<char*>(block));
  }

  void copy(void* to, const void* from, size_t bytes, CopyKind kind) override {
    const std::lock_guard lock(mutex_);
    if (kind == CopyKind::to_host) {
      compute();
      const Access access(*this);
      if (bytes > 0) std::memcpy(to, from, bytes);
    } else if (kind == CopyKind::within) {
      queue_.push_back({"a copy", [=] { std::memmove(to, from, bytes); }});
    } else {
      const auto* first = static_cast<const char*>(from);
      queue_.push_back({"a copy", [to, kept = std::vector<char>(first, first + bytes)] {
                          std::memcpy(to, kept.data(), kept.size());
                        }});
    }
  }

  void launch(const Launch& how, std::span<const Argument> arguments) override {
    const std::lock_guard lock(mutex_);
    const model::Grid grid = {.threads = how.threads,
                              .blocks_x = how.blocks_x,
                              .blocks_y = how.blocks_y,
                              .shared_bytes = how.shared_bytes};
    queue_.push_back({how.kernel, [this, grid, call = call_of(how.kernel, arguments)] {
                        model::run(grid, ++order_, call);
                      }});
  }

  void wait() override {
    const std::lock_guard lock(mutex_);
    compute();
  }
  void* allocate_shared(size_t bytes) override { return ::operator new(bytes); }
  void free_shared(void* block) override { ::operator delete(block); }

  void set_order(uint64_t seed) {
    const std::lock_guard lock(mutex_);
    order_ = seed << 32;
  }

 private:
  struct Work {
    const char* what;
    std::function<void()> compute;
  };

  // Makes the memory accessible during its lifetime.
  class Access {
   public:
    explicit Access(const ModelBackend& of) : of_(of) { protect(PROT_READ | PROT_WRITE); }
    ~Access() { protect(PROT_NONE); }
    Access(const Access&) = delete;
    Access& operator=(const Access&) = delete;

   private:
    void protect(int access) const {
      constexpr size_t kPage = 4096;
      if (of_.used_ > 0) mprotect(of_.begin_, (of_.used_ + kPage - 1) / kPage * kPage, access);
    }
    const ModelBackend& of_;
  };

  void compute() {
    if (queue_.empty()) return;
    const Access access(*this);
    for (const Work& work : std::exchange(queue_, {})) {
      work.compute();
      check_guards(work.what);
    }
  }

  void check_guards(const char* what) const {
    for (const auto& [block, bytes] : blocks_)
      check(intact(block - kGuard, block) && intact(block + bytes, block),
            "cuda-model: {} has written outside an array of {} bytes; expected it inside", what,
            bytes);
  }

  std::mutex mutex_;
  char* const begin_;
  size_t used_ = 0;
  std::map<char*, size_t> blocks_;              // in use
  std::map<size_t, std::vector<char*>> freed_;  // by size
  std::vector<Work> queue_;
  uint64_t order_ = 0;
};

ModelBackend& the_model() {
  static auto* const backend = new ModelBackend;  // never destroyed, like the tensors in its memory
  return *backend;
}

}  // namespace

Backend& model_backend() { return the_model(); }
void set_model_order(uint64_t seed) { the_model().set_order(seed); }

}  // namespace fovea::cuda
