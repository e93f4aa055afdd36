#include "cache/page_pool.h"

#include "cache/mixers.h"

namespace fovea {

size_t PagePool::Layout::page_bytes() const {
  int64_t bytes = 0;
  for (int64_t i = 0; i < std::ssize(layers); ++i) bytes += layer_bytes(i);
  return static_cast<size_t>(bytes);
}

PagePool::Layout PagePool::layout_for(const StackSpec& decoder, DType dtype) {
  const AttentionSpec& a = decoder.attention;
  const PageLayout keys{a.kv_heads, a.head_width, dtype}, values{a.kv_heads, a.value_width, dtype};
  const PageLayout latent{1, decoder.latent.width + decoder.latent.rotary, dtype};
  Layout layout{dtype, {}, keys, values};
  for (int64_t i = 0; i < decoder.layers; ++i) {
    if (is_recurrent(decoder, i))
      layout.layers.push_back({{}, {}, state_size(decoder, i)});
    else if (mixer_of(decoder, i) == MixerKind::latent)
      layout.layers.push_back({latent, {}});
    else
      layout.layers.push_back({keys, values});
  }
  return layout;
}

PagePool::PagePool(const Layout& layout, int64_t pages, const Device& device)
    : layout_(layout),
      memory_(empty({pages, static_cast<int64_t>(layout.page_bytes())}, DType::u8, device)),
      users_(static_cast<size_t>(pages)) {
  for (int64_t layer = 0, begin = 0; layer < std::ssize(layout.layers); ++layer) {
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
  copy_bytes(memory_, to * bytes, memory_, from * bytes, bytes);
}

}  // namespace fovea
