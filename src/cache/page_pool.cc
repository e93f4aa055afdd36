#include "cache/page_pool.h"

#include <cstring>

#include "cache/mixers.h"

namespace fovea {

size_t PagePool::Layout::page_bytes() const {
  int64_t bytes = 0;
  for (int64_t layer = 0; layer < layers(); ++layer) bytes += layer_bytes(layer);
  return static_cast<size_t>(bytes);
}

PagePool::Layout PagePool::layout_for(const StackSpec& decoder, DType dtype) {
  Layout layout{{decoder.attention.kv_heads, decoder.attention.head_width, dtype}, {}};
  for (int64_t layer = 0; layer < decoder.layers; ++layer)
    layout.state_sizes.push_back(state_size(decoder, layer));
  return layout;
}

PagePool::PagePool(const Layout& layout, int64_t pages)
    : layout_(layout),
      memory_(empty({pages, static_cast<int64_t>(layout.page_bytes())}, DType::u8)),
      users_(static_cast<size_t>(pages)) {
  for (int64_t layer = 0, begin = 0; layer < layout.layers(); ++layer) {
    layer_begins_.push_back(begin);
    begin += layout.layer_bytes(layer);
  }
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
  const int64_t bytes = memory_.dim(1);
  std::memcpy(memory_.data_as<char>() + to * bytes, memory_.data_as<char>() + from * bytes,
              static_cast<size_t>(bytes));
}

}  // namespace fovea
