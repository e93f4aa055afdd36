#pragma once

#include <cstddef>
#include <map>
#include <mutex>
#include <set>
#include <vector>

#include "tensor/tensor.h"

namespace fovea {

// Large blocks, cut out of segments that the system gave. A freed block becomes one with the free
// ranges around it, so that batches of ever other shapes take no more memory than the largest of
// them: a backward frees what its forward took in reverse.
class Segments {
 public:
  // null where the system has none left. The smallest range that fits, and of those the lowest.
  void* take(size_t bytes);
  void give(void* block, size_t bytes);
  void release();  // segments of which nothing is in use go back to the system
  size_t held() const { return held_; }

 private:
  bool grow(size_t bytes);
  void insert(char* begin, size_t bytes);
  void erase(char* begin, size_t bytes);

  std::map<char*, size_t> segments_, free_;       // ranges by address
  std::set<std::pair<size_t, char*>> free_size_;  // the free ones by size
  size_t held_ = 0;
};

// The memory of tensors: returned blocks are used again. A mutex is enough, since an op allocates
// once while its kernel runs for microseconds at least.
class Blocks {
 public:
  static Blocks& all();  // never destroyed: tensors may outlive main

  // `bytes` becomes the block's own size. OutOfMemory.
  void* take(size_t& bytes);
  void give(void* block, size_t bytes);
  MemoryUse use();
  void reset_peak();
  void release();  // what is not in use

 private:
  void* take_small(size_t& bytes);
  void release_unused();
  void count(size_t bytes);

  std::mutex mutex_;
  std::map<size_t, std::vector<void*>> small_;  // freed blocks by size
  Segments large_;
  MemoryUse use_;
};

}  // namespace fovea
