#pragma once

// A second device: the reference kernels over pages that only its kernels and copies can access.
// Any other access to an element of its tensors ends the process, so that a model that runs on it
// accesses the elements of a device only through the device's table.
//
// Kernels are queued, and computed as late as possible: when the host asks for a number or for a
// copy. So a result that the host reads without waiting, or host memory that a queued kernel needs
// and that has changed since the call, gives other bits than the reference.

#include <sys/mman.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <map>
#include <mutex>
#include <span>
#include <tuple>
#include <type_traits>
#include <vector>

#include "base/error.h"
#include "kernels/device.h"
#include "kernels/layout/kv_page.h"

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

// The kernels and copies that have been called and not computed, in the order of the calls.
class SecondQueue {
 public:
  static void add(std::function<void()> work) {
    const std::lock_guard lock(all().mutex_);
    all().work_.push_back(std::move(work));
  }
  // Computes all of them.
  static void wait() {
    const std::lock_guard lock(all().mutex_);
    if (all().work_.empty()) return;
    const SecondMemory::Access access;
    for (const auto& work : all().work_) work();
    all().work_.clear();
  }
  static size_t length() {
    const std::lock_guard lock(all().mutex_);
    return all().work_.size();
  }

 private:
  static SecondQueue& all() {
    static auto* const queue = new SecondQueue;
    return *queue;
  }

  std::mutex mutex_;
  std::vector<std::function<void()>> work_;
};

// An argument of a queued kernel, with copies of the host memory that it refers to.
template <class Argument>
class Kept {
 public:
  explicit Kept(const Argument& argument) : argument_(argument) {}
  const Argument& get() const { return argument_; }

 private:
  Argument argument_;
};

class KeptUnits {
 public:
  KeptUnits(const Units& units) {  // NOLINT
    if (units.starts != nullptr) starts_.assign(units.starts, units.starts + units.count + 1);
  }
  void restore(Units& units) const {
    if (!starts_.empty()) units.starts = starts_.data();
  }

 private:
  std::vector<int64_t> starts_;
};

template <>
class Kept<Rows> {
 public:
  explicit Kept(const Rows& rows) : rows_(rows), units_(rows.units) {}
  Rows get() const {
    Rows rows = rows_;
    units_.restore(rows.units);
    return rows;
  }

 private:
  Rows rows_;
  KeptUnits units_;
};

template <>
class Kept<GemmShape> {
 public:
  explicit Kept(const GemmShape& shape) : shape_(shape), units_(shape.units) {
    shape_.kept = nullptr;
  }
  GemmShape get() const {
    GemmShape shape = shape_;
    units_.restore(shape.units);
    return shape;
  }

 private:
  GemmShape shape_;
  KeptUnits units_;
};

template <>
class Kept<std::span<const PackedProduct>> {
 public:
  explicit Kept(std::span<const PackedProduct> products)
      : products_(products.begin(), products.end()) {}
  std::span<const PackedProduct> get() const { return products_; }

 private:
  std::vector<PackedProduct> products_;
};

template <>
class Kept<std::span<const PageRows>> {
 public:
  explicit Kept(std::span<const PageRows> rows) : rows_(rows.begin(), rows.end()) {
    for (const PageRows& each : rows_) layouts_.push_back(*each.layout);
  }
  std::vector<PageRows> get() const {
    std::vector<PageRows> rows = rows_;
    for (size_t i = 0; i < rows.size(); ++i) rows[i].layout = &layouts_[i];
    return rows;
  }

 private:
  std::vector<PageRows> rows_;
  std::vector<PageLayout> layouts_;
};

template <>
class Kept<std::vector<PagedText>> {
 public:
  using Pages = std::vector<const void*>;
  explicit Kept(const std::vector<PagedText>& texts) : texts_(texts) {
    for (const PagedText& text : texts_) {
      keys_.push_back(pages(text.key_pages, text.keys));
      values_.push_back(pages(text.value_pages, text.keys));
    }
  }
  std::vector<PagedText> get() const {
    std::vector<PagedText> texts = texts_;
    for (size_t i = 0; i < texts.size(); ++i) {
      texts[i].key_pages = keys_[i].data();
      texts[i].value_pages = values_[i].data();
    }
    return texts;
  }

 private:
  static Pages pages(const void* const* first, int64_t keys) {
    if (first == nullptr) return {};
    return Pages(first, first + (keys + kPageTokens - 1) / kPageTokens);  // not a list of two
  }

  std::vector<PagedText> texts_;
  std::vector<Pages> keys_, values_;
};

template <>
class Kept<std::span<const ConvText>> {
 public:
  explicit Kept(std::span<const ConvText> texts) : texts_(texts.begin(), texts.end()) {}
  std::span<const ConvText> get() const { return texts_; }

 private:
  std::vector<ConvText> texts_;
};

template <>
class Kept<std::span<const LinearText>> {
 public:
  explicit Kept(std::span<const LinearText> texts) : texts_(texts.begin(), texts.end()) {
    for (const LinearText& text : texts_)
      chunks_.emplace_back(text.chunks,
                           text.chunks + (text.end() + kChunkTokens - 1) / kChunkTokens);
  }
  std::vector<LinearText> get() const {
    std::vector<LinearText> texts = texts_;
    for (size_t i = 0; i < texts.size(); ++i) texts[i].chunks = chunks_[i].data();
    return texts;
  }

 private:
  std::vector<LinearText> texts_;
  std::vector<std::vector<LinearChunk>> chunks_;
};

// The function of an entry: that of the reference, queued unless its result is in host memory.
template <auto entry>
struct OnSecond;
template <KernelName name, class Result, class... Args,
          Kernel<name, Result(Args...)> Kernels::* entry>
struct OnSecond<entry> {
  static constexpr bool kInHostMemory =
      !std::is_void_v<Result> ||
      ((std::is_pointer_v<Args> && !std::is_const_v<std::remove_pointer_t<Args>>) || ...);

  static Result run(Args... args) {
    const auto& kernel = reference_kernels().*entry;
    if constexpr (kInHostMemory) {
      SecondQueue::wait();
      const SecondMemory::Access access;
      return kernel(args...);
    } else {
      SecondQueue::add([&kernel, kept = std::tuple(Kept<std::remove_cvref_t<Args>>(args)...)] {
        std::apply([&](const auto&... each) { kernel(each.get()...); }, kept);
      });
    }
  }
};

inline const Kernels kSecondTable = {
    .device = "second",
#define KERNEL(name, ...) .name = OnSecond<&Kernels::name>::run,
#include "kernels/entries.inc"
#undef KERNEL
};

inline const Kernels& second_kernels(DType = DType::f32) { return kSecondTable; }

inline void copy_on_second(void* to, const void* from, size_t bytes, CopyKind kind) {
  if (kind == CopyKind::to_host) {
    SecondQueue::wait();
    const SecondMemory::Access access;
    std::memcpy(to, from, bytes);
  } else if (kind == CopyKind::within) {
    SecondQueue::add([=] { std::memmove(to, from, bytes); });
  } else {
    const auto* first = static_cast<const char*>(from);
    SecondQueue::add([to, copy = std::vector<char>(first, first + bytes)] {
      std::memcpy(to, copy.data(), copy.size());
    });
  }
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
