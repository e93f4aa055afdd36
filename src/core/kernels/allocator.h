#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <mutex>
#include <set>
#include <utility>
#include <vector>

#include "fovea/core/tensor.h"
#include "kernels/device.h"

namespace fovea {

// Large blocks of memory, cut from segments that the system provides. A freed block is merged with
// the free ranges around it, so that batches of varying shapes take little more memory than the
// largest of them: a backward pass frees the blocks of its forward pass in reverse order.
class FreeList {
 public:
  // Allocates from the smallest free range that is large enough; of equal ones, from the range at
  // the highest address: the system maps new segments below older ones, whose pages are in memory
  // already. Returns null if the system has no memory.
  void* allocate(size_t bytes);
  void free(void* block, size_t bytes);
  // Returns unused segments of more than `above` bytes to the system.
  void release(size_t above = 0);
  size_t held() const { return held_; }

 private:
  bool grow(size_t bytes);
  void insert(char* begin, size_t bytes);
  void erase(char* begin, size_t bytes);

  using Range = std::pair<size_t, char*>;  // its size and its begin
  struct Before {
    bool operator()(const Range& a, const Range& b) const {
      return a.first != b.first ? a.first < b.first : std::greater<>()(a.second, b.second);
    }
  };

  std::map<char*, size_t> segments_, free_;  // ranges by address
  std::set<Range, Before> free_size_;        // the free ranges by size
  size_t held_ = 0;
};

// Allocates the memory of tensors and reuses freed blocks. One mutex is enough, since an op
// allocates few tensors and its kernel then runs for microseconds at least.
class Allocator {
 public:
  static Allocator& all();  // never destroyed: static tensors may be destroyed last

  // Allocates at least `bytes` and sets `bytes` to the block's actual size. Throws OutOfMemory if
  // the system has no memory.
  void* allocate(size_t& bytes);
  void free(void* block, size_t bytes);
  MemoryUse use();
  void reset_peak();
  void release();  // returns unused memory to the system

 private:
  void* allocate_small(size_t& bytes);
  void release_unused();
  void count(size_t bytes);

  std::mutex mutex_;
  std::map<size_t, std::vector<void*>> small_;  // freed blocks by size
  FreeList large_;
  MemoryUse use_;
};

}  // namespace fovea
