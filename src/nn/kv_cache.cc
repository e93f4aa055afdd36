#include "nn/kv_cache.h"

#include <algorithm>
#include <cstring>

#include "base/error.h"

namespace fovea {
namespace {

int64_t pages_for(int64_t tokens) { return (tokens + kPageTokens - 1) / kPageTokens; }

}  // namespace

bool make_room(PagePool& pool, CachedText& text, int64_t length) {
  const int64_t needed = pages_for(length) - std::ssize(text.pages);
  const bool inside = text.length % kPageTokens != 0 && length > text.length;
  const bool copies = inside && pool.users(text.pages.back()) > 1;
  if (needed + copies > pool.free_pages()) return false;
  if (copies) {
    const int32_t own = pool.take();
    pool.copy(text.pages.back(), own, text.length % kPageTokens);
    pool.release(text.pages.back());
    text.pages.back() = own;
  }
  for (int64_t i = 0; i < needed; ++i) text.pages.push_back(pool.take());
  return true;
}

void shorten(PagePool& pool, CachedText& text, int64_t length) {
  while (std::ssize(text.pages) > pages_for(length)) {
    pool.release(text.pages.back());
    text.pages.pop_back();
  }
  text.length = std::min(text.length, length);
}

CachedText forked(PagePool& pool, const CachedText& text) {
  for (const int32_t page : text.pages) pool.share(page);
  return text;
}

KvCache::KvCache(PagePool& pool, std::vector<Member> members)
    : pool_(&pool), members_(std::move(members)), capacity_(pool.pages() * kPageTokens) {}

KvCache::KvCache(const PagePool::Layout& layout, int64_t batch, int64_t capacity)
    : owned_pool_(std::make_shared<PagePool>(layout, batch * pages_for(capacity))),
      pool_(owned_pool_.get()),
      capacity_(capacity) {
  for (int64_t b = 0; b < batch; ++b) {
    owned_texts_.push_back(std::make_shared<CachedText>());
    members_.push_back({owned_texts_.back().get(), 0, 0});
  }
}

int64_t KvCache::length() const {
  int64_t most = 0;
  for (const Member& member : members_) most = std::max(most, member.text->length);
  return most;
}

int64_t KvCache::total() const {
  int64_t most = 0;
  for (const Member& member : members_) most = std::max(most, member.text->length + member.tokens);
  return most;
}

void KvCache::clear() {
  for (const Member& member : members_) {
    shorten(*pool_, *member.text, 0);
    member.text->memory.reset();
  }
}

void KvCache::begin(int64_t B, int64_t T) {
  if (!owned_texts_.empty()) {
    check(B == std::ssize(members_), "KV cache: {} texts; expected {}", B, members_.size());
    for (Member& member : members_) member.tokens = T, member.horizon = member.text->length + T;
  }
  int64_t rows = 0;
  for (const Member& member : members_) {
    const int64_t length = member.text->length + member.tokens;
    check(length <= capacity_ && make_room(*pool_, *member.text, length),
          "KV cache: {} tokens and {} more; expected at most {}", member.text->length,
          member.tokens, capacity_);
    rows += member.tokens;
  }
  check(rows == B * T, "KV cache: {} new tokens; expected {}", B * T, rows);
}

Tensor KvCache::places() const {
  std::vector<int32_t> places;
  for (const Member& member : members_)
    for (int64_t t = 0; t < member.tokens; ++t)
      places.push_back(static_cast<int32_t>(member.text->length + t));
  const Tensor result = empty({1, std::ssize(places)}, DType::i32);
  std::copy(places.begin(), places.end(), result.data_as<int32_t>());
  return result;
}

void KvCache::append(int64_t layer, const Tensor& k, const Tensor& v) {
  const PagePool::Layout& l = layout();
  const int64_t width = l.kv_heads * l.head_width;
  check(
      k.size() == v.size() && k.size() % width == 0 && k.dtype() == l.dtype && v.dtype() == l.dtype,
      "KV cache: keys are {} [{}], values {} [{}]; expected {} [rows, {}, {}]", name_of(k.dtype()),
      fmt::join(k.shape(), ", "), name_of(v.dtype()), fmt::join(v.shape(), ", "), name_of(l.dtype),
      l.kv_heads, l.head_width);
  const auto token = static_cast<size_t>(width) * size_of(l.dtype);
  const char* from_k = k.data_as<char>();
  const char* from_v = v.data_as<char>();
  for (const Member& member : members_) {
    for (int64_t t = member.text->length, end = t + member.tokens; t < end;) {
      const int32_t page = member.text->pages[static_cast<size_t>(t / kPageTokens)];
      const int64_t count = std::min(end - t, kPageTokens - t % kPageTokens);
      const size_t offset = static_cast<size_t>(t % kPageTokens) * token;
      const size_t bytes = static_cast<size_t>(count) * token;
      std::memcpy(pool_->keys(layer, page) + offset, from_k, bytes);
      std::memcpy(pool_->values(layer, page) + offset, from_v, bytes);
      from_k += bytes, from_v += bytes, t += count;
    }
  }
}

void KvCache::end() {
  for (Member& member : members_) {
    member.text->length += member.tokens;
    member.tokens = 0;
  }
}

std::vector<PagedText> KvCache::spans(int64_t layer, const Mask& mask) {
  pointers_.clear();
  std::vector<PagedText> spans;
  int64_t row = 0;
  for (size_t i = 0; i < members_.size(); ++i) {
    const auto& [text, tokens, horizon] = members_[i];
    PagedText& span = spans.emplace_back();
    span = {.row = row, .queries = tokens, .keys = text->length + tokens, .mask = mask};
    span.mask.first_query = text->length;
    if (!mask.valid.empty()) span.mask.valid = {mask.valid[i]};
    std::vector<const void*> keys, values;
    for (const int32_t page : text->pages) {
      keys.push_back(pool_->keys(layer, page));
      values.push_back(pool_->values(layer, page));
    }
    span.key_pages = pointers_.emplace_back(std::move(keys)).data();
    span.value_pages = pointers_.emplace_back(std::move(values)).data();
    row += tokens;
  }
  return spans;
}

bool KvCache::has_memory(int64_t layer) const {
  const auto& memory = members_.at(0).text->memory;
  return memory != nullptr && std::ssize(memory->layers) > layer;
}

void KvCache::set_memory(int64_t layer, const Tensor& k, const Tensor& v,
                         const std::vector<Interval>& valid) {
  check(k.dim(0) == std::ssize(members_), "KV cache: memory of {} texts; expected {}", k.dim(0),
        members_.size());
  const Shape one{k.dim(1), k.dim(2), k.dim(3)};
  for (size_t b = 0; b < members_.size(); ++b) {
    const auto row = static_cast<int64_t>(b);
    CachedText& text = *members_[b].text;
    if (text.memory == nullptr) text.memory = std::make_shared<CachedText::Memory>();
    check(layer == std::ssize(text.memory->layers), "KV cache: memory of layer {}; expected {}",
          layer, text.memory->layers.size());
    text.memory->layers.push_back({k.rows(row, row + 1).view(one), v.rows(row, row + 1).view(one)});
    if (!valid.empty()) text.memory->valid = {valid[b]};
  }
}

std::vector<PagedText> KvCache::memory_spans(int64_t layer) {
  pointers_.clear();
  std::vector<PagedText> spans;
  int64_t row = 0;
  const CachedText::Memory* before = nullptr;
  for (const auto& [text, tokens, horizon] : members_) {
    if (text->memory.get() == before) {  // another beam of the same text: its rows join
      spans.back().queries += tokens;
      row += tokens;
      continue;
    }
    before = text->memory.get();
    const auto& [k, v] = text->memory->layers[static_cast<size_t>(layer)];
    PagedText& span = spans.emplace_back();
    span = {.row = row, .queries = tokens, .keys = k.dim(0), .mask = {}};
    span.mask.valid = text->memory->valid;
    std::vector<const void*> keys, values;
    for (int64_t t = 0; t < k.dim(0); t += kPageTokens) {
      keys.push_back(k.rows(t, t + 1).data());
      values.push_back(v.rows(t, t + 1).data());
    }
    span.key_pages = pointers_.emplace_back(std::move(keys)).data();
    span.value_pages = pointers_.emplace_back(std::move(values)).data();
    row += tokens;
  }
  return spans;
}

Tensor KvCache::keys(int64_t layer, int64_t member) const {
  const PagePool::Layout& l = layout();
  const auto& [text, tokens, horizon] = members_[static_cast<size_t>(member)];
  const int64_t length = text->length + tokens;
  const Tensor k = empty({1, length, l.kv_heads, l.head_width}, l.dtype);
  const auto token = static_cast<size_t>(l.kv_heads * l.head_width) * size_of(l.dtype);
  for (int64_t t = 0; t < length; t += kPageTokens) {
    const auto count = static_cast<size_t>(std::min(kPageTokens, length - t));
    std::memcpy(k.data_as<char>() + static_cast<size_t>(t) * token,
                pool_->keys(layer, text->pages[static_cast<size_t>(t / kPageTokens)]),
                count * token);
  }
  return k;
}

}  // namespace fovea
