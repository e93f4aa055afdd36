#include "nn/page_pool.h"

#include <cstring>

namespace fovea {

size_t PagePool::Layout::page_bytes() const {
  return static_cast<size_t>(2 * layers * kPageTokens * kv_heads * head_width) * size_of(dtype);
}

PagePool::PagePool(const Layout& layout, int64_t pages)
    : layout_(layout),
      plane_bytes_(kPageTokens * layout.kv_heads * layout.head_width *
                   static_cast<int64_t>(size_of(layout.dtype))),
      memory_(empty({2 * layout.layers, pages, kPageTokens, layout.kv_heads, layout.head_width},
                    layout.dtype)),
      users_(static_cast<size_t>(pages)) {
  // The lowest come first, so that a pool that is never full stays small.
  for (int64_t page = pages; page-- > 0;) free_.push_back(static_cast<int32_t>(page));
}

int32_t PagePool::take() {
  if (free_.empty()) return -1;
  const int32_t page = free_.back();
  free_.pop_back();
  users_[static_cast<size_t>(page)] = 1;
  return page;
}

void PagePool::release(int32_t page) {
  if (--users_[static_cast<size_t>(page)] == 0) free_.push_back(page);
}

void PagePool::copy(int32_t from, int32_t to, int64_t tokens) const {
  const auto bytes = static_cast<size_t>(plane_bytes_ / kPageTokens * tokens);
  for (int64_t plane = 0; plane < 2 * layout_.layers; ++plane)
    std::memcpy(at(plane, to), at(plane, from), bytes);
}

}  // namespace fovea
