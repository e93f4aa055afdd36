#include "kernels/allocator.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <iterator>

#include "base/error.h"

namespace fovea {
namespace {

constexpr size_t kAlignment = 64;  // a cache line, and the widest vector
// Smaller blocks are reused by size. Larger ones take most of the memory, and batches of varying
// lengths have them in ever new sizes.
constexpr size_t kLarge = size_t{64} << 10;
constexpr size_t kLargeUnit = size_t{4} << 10;
constexpr size_t kHugePage = size_t{2} << 20;
constexpr size_t kSegment = size_t{64} << 20;  // pages that are never written take no memory

size_t rounded(size_t bytes) {
  const size_t unit = bytes >= kLarge ? kLargeUnit : kAlignment;
  return std::max(unit, (bytes + unit - 1) / unit * unit);
}

}  // namespace

void FreeList::insert(char* begin, size_t bytes) {
  free_[begin] = bytes;
  free_size_.emplace(bytes, begin);
}

void FreeList::erase(char* begin, size_t bytes) {
  free_.erase(begin);
  free_size_.erase({bytes, begin});
}

bool FreeList::grow(size_t bytes) {
  // Segments of single large tensors are replaced when these grow, such as the logits of batches of
  // different lengths. Otherwise each new size would take further memory.
  if (bytes > kSegment) release(kSegment);
  const size_t size = std::max(kSegment, (bytes + kHugePage - 1) / kHugePage * kHugePage);
  auto* const begin = static_cast<char*>(std::aligned_alloc(kHugePage, size));
  if (begin == nullptr) return false;
  // Huge pages: computing a weight gradient reads thousands of rows, and with 4 KiB pages each row
  // would need its own TLB entry.
  madvise(begin, size, MADV_HUGEPAGE);
  segments_[begin] = size;
  held_ += size;
  insert(begin, size);
  return true;
}

void* FreeList::allocate(size_t bytes) {
  const Range first = {bytes, reinterpret_cast<char*>(UINTPTR_MAX)};
  auto found = free_size_.lower_bound(first);
  if (found == free_size_.end()) {
    if (!grow(bytes)) return nullptr;
    found = free_size_.lower_bound(first);
  }
  const auto [size, begin] = *found;
  erase(begin, size);
  if (size > bytes) insert(begin + bytes, size - bytes);
  return begin;
}

void FreeList::free(void* block, size_t bytes) {
  auto* begin = static_cast<char*>(block);
  const auto next = free_.lower_bound(begin);
  const bool joins_next =
      next != free_.end() && next->first == begin + bytes && !segments_.contains(next->first);
  const bool after_one = next != free_.begin() && !segments_.contains(begin);
  const auto before = after_one ? std::prev(next) : free_.end();
  const size_t after = joins_next ? next->second : 0;
  if (joins_next) erase(begin + bytes, after);
  bytes += after;
  if (before != free_.end() && before->first + before->second == begin) {
    begin = before->first;
    const size_t ahead = before->second;
    erase(begin, ahead);
    bytes += ahead;
  }
  insert(begin, bytes);
}

void FreeList::release(size_t above) {
  for (auto at = segments_.begin(); at != segments_.end();) {
    const auto [begin, size] = *at;
    const auto found = free_.find(begin);
    const bool unused = size > above && found != free_.end() && found->second == size;
    at = unused ? segments_.erase(at) : std::next(at);
    if (!unused) continue;
    erase(begin, size);
    std::free(begin);
    held_ -= size;
  }
}

Allocator& Allocator::all() {
  static auto* const instance = new Allocator;
  return *instance;
}

// Reuses a freed block that is at most a quarter larger than `bytes`, if there is one.
void* Allocator::allocate_small(size_t& bytes) {
  const size_t most = bytes + bytes / 4;
  for (auto at = small_.lower_bound(bytes); at != small_.end() && at->first <= most; ++at) {
    if (at->second.empty()) continue;
    void* block = at->second.back();  // freed last, so most likely still in the CPU's cache
    at->second.pop_back();
    bytes = at->first;
    return block;
  }
  void* const block = std::aligned_alloc(kAlignment, bytes);
  if (block != nullptr) use_.held += bytes;
  return block;
}

void* Allocator::allocate(size_t& bytes) {
  const std::lock_guard lock(mutex_);
  bytes = rounded(bytes);
  const auto attempt = [&] {
    return bytes >= kLarge ? large_.allocate(bytes) : allocate_small(bytes);
  };
  void* block = attempt();
  if (block == nullptr) {
    release_unused();
    block = attempt();
  }
  if (block == nullptr) {
    fail(ErrorKind::OutOfMemory, "memory: cannot allocate {} bytes for a tensor ({} in use)", bytes,
         use_.live);
  }
  count(bytes);
  return block;
}

void Allocator::free(void* block, size_t bytes) {
  const std::lock_guard lock(mutex_);
  use_.live -= bytes;
  if (bytes >= kLarge) return large_.free(block, bytes);
  small_[bytes].push_back(block);
}

MemoryUse Allocator::use() {
  const std::lock_guard lock(mutex_);
  MemoryUse use = use_;
  use.held += large_.held();
  return use;
}

void Allocator::reset_peak() {
  const std::lock_guard lock(mutex_);
  use_.peak = use_.live;
}

void Allocator::release() {
  const std::lock_guard lock(mutex_);
  release_unused();
}

void Allocator::release_unused() {
  for (auto& [bytes, blocks] : small_) {
    for (void* block : blocks) std::free(block);
    use_.held -= bytes * blocks.size();
  }
  small_.clear();
  large_.release();
}

void Allocator::count(size_t bytes) {
  use_.live += bytes;
  use_.peak = std::max(use_.peak, use_.live);
}

}  // namespace fovea
