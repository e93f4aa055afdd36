#include "cache/page_pool.h"

#include <cstring>

namespace fovea {

PagePool::PagePool(const Layout& layout, int64_t pages)
    : layout_(layout),
      plane_bytes_(layout.of_layer().page_bytes()),
      memory_(empty({pages, 2 * layout.layers, plane_bytes_}, DType::u8)),
      users_(static_cast<size_t>(pages)) {
  // The lowest pages are taken first, so that a pool that is rarely full uses little memory.
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

void PagePool::copy(int32_t from, int32_t to) const {
  std::memcpy(at(0, to), at(0, from), layout_.page_bytes());
}

}  // namespace fovea
