#pragma once

#include <new>

#include "kernels/kernels.h"

namespace fovea::test {

// While it exists, models cannot look up embeddings, as if memory had run out.
class NoMemory {
 public:
  NoMemory() : table_(cpu_kernels()) {
    table_.embedding = [](Out, In, Indices, Rows) { throw std::bad_alloc(); };
    use_kernels(&table_);
  }
  ~NoMemory() { use_kernels(nullptr); }
  NoMemory(const NoMemory&) = delete;
  NoMemory& operator=(const NoMemory&) = delete;

 private:
  Kernels table_;
};

}  // namespace fovea::test
