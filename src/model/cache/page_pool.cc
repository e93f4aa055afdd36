#include "cache/page_pool.h"

#include <algorithm>

namespace fovea::model {

int64_t PagePool::Layout::most_rejected() const {
  const bool recurrent = std::any_of(layers.begin(), layers.end(),
                                     [](const Layer& layer) { return layer.state_size > 0; });
  return recurrent ? kStateSlots - 1 : kMostRejected;
}

int64_t PagePool::pages_of(const Reach& reach, const Size& size) {
  if (reach.window == 0 || size.texts == 0) return size.pages;
  // The window begins before the last kMostRejected tokens, which may be rejected, and a pass reads
  // at most 1 + kMostRejected tokens of a text that is not a prompt. These tokens may begin and end
  // within pages.
  const int64_t of_text = pages_for(reach.global) + pages_for(reach.window + 2 * kMostRejected) + 2;
  return std::min(size.pages, size.texts * of_text + pages_for(size.step_tokens));
}

int64_t PagePool::bytes_of(const Layout& layout, const Size& size) {
  int64_t bytes = 0;
  for (int64_t i = 0; i < std::ssize(layout.layers); ++i)
    bytes += layout.layer_bytes(i) * pages_of(layout.layer(i).reach, size);
  return bytes;
}

PagePool::PagePool(const Layout& layout, const Size& size, const Device& device)
    : layout_(layout), groups_(1) {
  for (int64_t i = 0; i < std::ssize(layout.layers); ++i) {
    const Reach& reach = layout.layer(i).reach;
    auto group = std::find_if(groups_.begin(), groups_.end(),
                              [&](const Group& g) { return g.reach == reach; });
    if (group == groups_.end()) group = groups_.insert(group, {.reach = reach});
    slots_.push_back({static_cast<size_t>(group - groups_.begin()), group->page_bytes});
    group->page_bytes += layout.layer_bytes(i);
  }
  for (Group& group : groups_) {
    const int64_t pages = pages_of(group.reach, size);
    if (group.page_bytes > 0) group.memory = empty({pages, group.page_bytes}, DType::u8, device);
    group.users.resize(static_cast<size_t>(pages));
    // The lowest pages are taken first, so that a pool that is rarely full uses little memory.
    for (int64_t page = pages; page-- > 0;) group.free.push_back(static_cast<int32_t>(page));
  }
}

int64_t PagePool::bytes() const {
  int64_t bytes = 0;
  for (size_t group = 0; group < groups(); ++group)
    bytes += pages(group) * groups_[group].page_bytes;
  return bytes;
}

int64_t PagePool::used_bytes() const {
  int64_t bytes = this->bytes();
  for (size_t group = 0; group < groups(); ++group)
    bytes -= free_pages(group) * groups_[group].page_bytes;
  return bytes;
}

int32_t PagePool::take(size_t group) {
  std::vector<int32_t>& free = groups_[group].free;
  if (free.empty()) return -1;
  const int32_t page = free.back();
  free.pop_back();
  users_of(group, page) = 1;
  return page;
}

void PagePool::release(size_t group, int32_t page) {
  if (--users_of(group, page) == 0) groups_[group].free.push_back(page);
}

// Copies the first tokens of the keys or values that begin at the bytes `from` to those at `to`.
void PagePool::copy_part(int64_t layer, PagePart part, int64_t from, int64_t to,
                         int64_t tokens) const {
  const Layer& of = layout_.layer(layer);
  const PageLayout& stored = part == PagePart::keys ? of.keys : of.values;
  const Tensor& memory = this->memory(layer);
  for (int64_t head = 0; head < stored.heads && stored.width > 0; ++head) {
    const int64_t begin = head * stored.head_bytes(), scales = begin + stored.scales_at();
    copy_bytes(memory, to + begin, memory, from + begin, stored.first_bytes(part, tokens));
    if (stored.dtype == DType::i8)
      copy_bytes(memory, to + scales, memory, from + scales, tokens * int64_t{sizeof(float)});
  }
}

void PagePool::copy(size_t group, int32_t from, int32_t to, int64_t tokens) const {
  for (int64_t layer = 0; layer < std::ssize(slots_); ++layer) {
    if (group_of(layer) != group) continue;
    const int64_t here = begin_of(layer, from), there = begin_of(layer, to);
    const int64_t keys = layout_.layer(layer).keys.page_bytes();
    copy_part(layer, PagePart::keys, here, there, tokens);
    copy_part(layer, PagePart::values, here + keys, there + keys, tokens);
    if (const int64_t states = kStateSlots * layout_.state_bytes(layer); states > 0)
      copy_bytes(memory(layer), there, memory(layer), here, states);
    if (const int64_t chunk = layout_.chunk_bytes(layer); chunk > 0)
      copy_bytes(memory(layer), there, memory(layer), here, chunk);
  }
}

LinearChunk PagePool::chunk(int64_t layer, int32_t page) const {
  const LinearAttention& shape = layout_.layer(layer).chunk;
  Out next = at(Out(memory(layer)), begin_of(layer, page));
  next.dtype = layout_.state_dtype();
  const auto take = [&](int64_t size) {
    const Out part = next;
    next = at(next, size);
    return part;
  };
  return {take(shape.state_size()), take(shape.keys_size()), take(shape.values_size()),
          take(shape.decays_size())};
}

Out PagePool::inputs(int64_t layer, int32_t page) const {
  Out rows = at(Out(memory(layer)), begin_of(layer, page));
  rows.dtype = layout_.state_dtype();
  return at(rows, layout_.layer(layer).chunk_size());
}

void PagePool::read_page(size_t group, int32_t page, const Tensor& rows, int64_t row) const {
  const auto& [reach, bytes, memory, users, free] = groups_[group];
  if (bytes > 0) copy_bytes(rows, row * bytes, memory, page * bytes, bytes);
}

void PagePool::write_page(size_t group, int32_t page, const Tensor& rows, int64_t row) const {
  const auto& [reach, bytes, memory, users, free] = groups_[group];
  if (bytes > 0) copy_bytes(memory, page * bytes, rows, row * bytes, bytes);
}

}  // namespace fovea::model
