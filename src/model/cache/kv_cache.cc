#include "cache/kv_cache.h"

#include <algorithm>

#include "base/error.h"
#include "ops/common.h"

namespace fovea::model {
namespace {

// Returns whether the last page must be copied before the text grows to `length` tokens.
bool copies(const PagePool& pool, const CachedText& text, size_t group, int64_t length) {
  const bool inside = text.length % kPageTokens != 0 && length > text.length;
  return inside && pool.users(group, text.pages[group].back()) > 1;
}

// Returns the free pages of each group: "3 of 8 are free", or "of groups 3 of 8, 0 of 4 are free".
std::string free_pages_of(const PagePool& pool) {
  std::vector<std::string> groups;
  for (size_t group = 0; group < pool.groups(); ++group)
    groups.push_back(fmt::format("{} of {}", pool.free_pages(group), pool.pages(group)));
  return fmt::format("{}{} are free", groups.size() > 1 ? "of groups " : "",
                     fmt::join(groups, ", "));
}

}  // namespace

void release_unread(PagePool& pool, CachedText& text) {
  for (size_t group = 1; group < text.pages.size(); ++group) {
    for (int64_t i = 0; i < std::ssize(text.pages[group]); ++i) {
      int32_t& page = text.pages[group][static_cast<size_t>(i)];
      if (page < 0 || pool.reach(group).reads(i, text.shortest)) continue;
      pool.release(group, page);
      page = -1;
    }
  }
}

bool lacks_pages(const PagePool& pool, const CachedText& text, size_t group, int64_t length) {
  const int64_t held = text.pages.empty() ? 0 : std::ssize(text.pages[group]);
  return pages_for(length) - held + copies(pool, text, group, length) > pool.free_pages(group);
}

bool make_room(PagePool& pool, CachedText& text, int64_t length) {
  release_unread(pool, text);
  for (size_t group = 0; group < pool.groups(); ++group)
    if (lacks_pages(pool, text, group, length)) return false;
  text.pages.resize(pool.groups());
  for (size_t group = 0; group < pool.groups(); ++group) {
    std::vector<int32_t>& pages = text.pages[group];
    if (copies(pool, text, group, length)) {
      const int32_t own = pool.take(group);
      pool.copy(group, pages.back(), own, text.length % kPageTokens);
      pool.release(group, pages.back());
      pages.back() = own;
    }
    while (std::ssize(pages) < pages_for(length)) pages.push_back(pool.take(group));
  }
  return true;
}

void shorten(PagePool& pool, CachedText& text, int64_t length) {
  if (length < text.shortest) length = 0;
  for (size_t group = 0; group < text.pages.size(); ++group) {
    std::vector<int32_t>& pages = text.pages[group];
    for (; std::ssize(pages) > pages_for(length); pages.pop_back())
      if (pages.back() >= 0) pool.release(group, pages.back());
  }
  text.length = std::min(text.length, length);
  text.kept = std::min(text.kept, text.length / kPageTokens);
  if (length == 0) text.pages.clear(), text.shortest = 0;
}

CachedText forked(PagePool& pool, const CachedText& text) {
  for (size_t group = 0; group < text.pages.size(); ++group)
    for (const int32_t page : text.pages[group])
      if (page >= 0) pool.share(group, page);
  return text;
}

KvCache::KvCache(PagePool& pool, std::vector<Member> members)
    : pool_(&pool), members_(std::move(members)), capacity_(pool.pages() * kPageTokens) {}

KvCache::KvCache(const PagePool::Layout& layout, int64_t batch, int64_t capacity,
                 const Device& device)
    : owned_pool_(std::make_shared<PagePool>(
          layout, PagePool::Size{.pages = batch * pages_for(capacity)}, device)),
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
    check(length <= capacity_, "KV cache: {} tokens and {} more; expected at most {}",
          member.text->length, member.tokens, capacity_);
    check(make_room(*pool_, *member.text, length),
          "KV cache: {} tokens and {} more; expected enough free pages ({})", member.text->length,
          member.tokens, free_pages_of(*pool_));
    rows += member.tokens;
  }
  check(rows == B * T, "KV cache: {} new tokens; expected {}", B * T, rows);
}

Tensor KvCache::positions() const {
  std::vector<int32_t> positions;
  for (const Member& member : members_)
    for (int64_t t = 0; t < member.tokens; ++t)
      positions.push_back(static_cast<int32_t>(member.text->length + t));
  const Tensor result = empty({1, std::ssize(positions)}, DType::i32);
  std::copy(positions.begin(), positions.end(), result.data_as<int32_t>());
  return result;
}

void KvCache::append(int64_t layer, const Tensor& k, const Tensor& v) {
  const PageLayout &keys = layout().layer(layer).keys, &values = layout().layer(layer).values;
  const int64_t width = keys.heads * keys.width, value_width = values.heads * values.width;
  check(k.size() % width == 0 && v.size() * width == k.size() * value_width &&
            (!v || k.dtype() == v.dtype()),
        "KV cache: keys are {} {}, values {} {}; expected [rows, {}, {}] and [rows, {}, {}], of "
        "one dtype",
        name_of(k.dtype()), describe(k.shape()), name_of(v.dtype()), describe(v.shape()),
        keys.heads, keys.width, values.heads, values.width);
  std::vector<PageRows> rows;
  rows.reserve(2 * members_.size());
  int64_t row = 0;
  for (const Member& member : members_) {
    const std::vector<int32_t>& pages = member.text->pages[pool_->group_of(layer)];
    for (int64_t t = member.text->length, end = t + member.tokens; t < end;) {
      const int32_t page = pages[static_cast<size_t>(t / kPageTokens)];
      const int64_t token = t % kPageTokens, count = std::min(end - t, kPageTokens - token);
      rows.push_back(
          {&keys, PagePart::keys, pool_->keys(layer, page), token, count, at(In(k), row * width)});
      if (v)
        rows.push_back({&values, PagePart::values, pool_->values(layer, page), token, count,
                        at(In(v), row * value_width)});
      row += count, t += count;
    }
  }
  kernels(k).put_in_pages(rows);
}

void KvCache::load_state(int64_t layer, size_t member, const Tensor& states) const {
  const CachedText& text = *members_[member].text;
  if (text.length == 0) return;
  const int64_t last = text.length - 1, bytes = layout().state_bytes(layer);
  const int32_t page = text.pages[pool_->group_of(layer)][static_cast<size_t>(last / kPageTokens)];
  copy_bytes(states, static_cast<int64_t>(member) * bytes, pool_->memory(layer),
             pool_->state_begin(layer, page, last % kPageTokens), bytes);
}

void KvCache::store_state(int64_t layer, size_t member, int64_t token, const Tensor& states) {
  const CachedText& text = *members_[member].text;
  const int64_t position = text.length + token, bytes = layout().state_bytes(layer);
  const int64_t number = position / kPageTokens;
  const int64_t end = std::min(text.length + members_[member].tokens, (number + 1) * kPageTokens);
  if (end - position > kStateSlots) return;  // a later token of this pass has the same slot
  const int32_t page = text.pages[pool_->group_of(layer)][static_cast<size_t>(number)];
  copy_bytes(pool_->memory(layer), pool_->state_begin(layer, page, position % kPageTokens), states,
             static_cast<int64_t>(member) * bytes, bytes);
}

std::span<const LinearText> KvCache::linear_texts(int64_t layer) {
  const size_t group = pool_->group_of(layer);
  size_t count = 0;
  for (const Member& member : members_) count += member.text->pages[group].size();
  chunks_.clear(), linear_texts_.clear();
  chunks_.reserve(count);  // the texts point to them
  int64_t row = 0;
  for (const auto& [text, tokens, horizon] : members_) {
    linear_texts_.push_back({row, tokens, text->length, chunks_.data() + chunks_.size()});
    for (const int32_t page : text->pages[group])
      chunks_.push_back(page < 0 ? LinearChunk() : pool_->chunk(layer, page));
    row += tokens;
  }
  return linear_texts_;
}

KvCache::Inputs KvCache::append_inputs(int64_t layer, const Tensor& x, int64_t column,
                                       int64_t count) {
  const int64_t width = x.dim(2), all = layout().layer(layer).inputs;
  const DType dtype = layout().state_dtype();
  Inputs before{zeros({std::ssize(members_), count, width}, dtype, x.device()), {}};
  const Kernels& k = kernels(x);
  const Tensor rows = in_dtype(x, dtype);
  int64_t row = 0, member = 0;
  for (const auto& [text, tokens, horizon] : members_) {
    const std::vector<int32_t>& pages = text->pages[pool_->group_of(layer)];
    const auto page_rows = [&](int64_t t) {
      return at(pool_->inputs(layer, pages[static_cast<size_t>(t / kPageTokens)]),
                t % kPageTokens * all);
    };
    for (int64_t t = std::max(int64_t{0}, text->length - count); t < text->length; ++t) {
      const Out from = page_rows(t);
      k.copy_columns(
          at(Out(before.rows), (member * count + t - text->length + count) * width),
          {from.data, from.dtype, from.device},
          {.rows = 1, .width = width, .from_stride = all, .from = column, .to_stride = width});
    }
    for (int64_t t = text->length, end = t + tokens; t < end;) {
      const int64_t many = std::min(end - t, kPageTokens - t % kPageTokens);
      k.copy_columns(
          page_rows(t), at(In(rows), (row + t - text->length) * width),
          {.rows = many, .width = width, .from_stride = width, .to_stride = all, .to = column});
      t += many;
    }
    before.texts.push_back({row, tokens, at(In(before.rows), member * count * width)});
    row += tokens, ++member;
  }
  return before;
}

void KvCache::end() {
  for (Member& member : members_) {
    CachedText& text = *member.text;
    text.length += member.tokens;
    if (pool_->groups() > 1)
      text.shortest = std::max(text.shortest, text.length - layout().most_rejected());
    member.tokens = 0;
  }
}

std::vector<PagedText> KvCache::spans(int64_t layer, const Mask& mask) {
  const size_t group = pool_->group_of(layer);
  size_t count = 0;
  for (const Member& member : members_) count += member.text->pages[group].size();
  pointers_.resize(2 * count);
  const void** next = pointers_.data();
  std::vector<PagedText> spans;
  spans.reserve(members_.size());
  int64_t row = 0;
  for (size_t i = 0; i < members_.size(); ++i) {
    const auto& [text, tokens, horizon] = members_[i];
    PagedText& span = spans.emplace_back();
    span = {.row = row, .queries = tokens, .keys = text->length + tokens, .mask = mask};
    span.mask.first_query = text->length;
    if (!mask.valid.empty()) span.mask.valid = {mask.valid[i]};
    span.key_pages = next;
    const std::vector<int32_t>& pages = text->pages[group];
    for (const int32_t page : pages) *next++ = page < 0 ? nullptr : pool_->keys(layer, page).data;
    span.value_pages = next;
    for (const int32_t page : pages) *next++ = page < 0 ? nullptr : pool_->values(layer, page).data;
    row += tokens;
  }
  return spans;
}

bool KvCache::has_memory(int64_t layer) const {
  const auto& memory = members_.at(0).text->memory;
  return memory != nullptr && std::ssize(memory->layers) > layer;
}

// Copies x [S, G, D] into pages, u8 [pages, bytes].
Tensor KvCache::paged(PagePart part, const Tensor& x) const {
  const PageLayout& page = part == PagePart::keys ? layout().memory_keys : layout().memory_values;
  const int64_t S = x.dim(0);
  Tensor pages = empty({pages_for(S), page.page_bytes()}, DType::u8, x.device());
  std::vector<PageRows> rows;
  for (int64_t t = 0; t < S; t += kPageTokens)
    rows.push_back({&page, part, at(Out(pages), t / kPageTokens * page.page_bytes()), 0,
                    std::min(kPageTokens, S - t), at(In(x), t * page.heads * page.width)});
  kernels(x).put_in_pages(rows);
  return pages;
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
    text.memory->layers.push_back({paged(PagePart::keys, k.rows(row, row + 1).view(one)),
                                   paged(PagePart::values, v.rows(row, row + 1).view(one))});
    text.memory->tokens = k.dim(1);
    if (!valid.empty()) text.memory->valid = {valid[b]};
  }
}

std::vector<PagedText> KvCache::memory_spans(int64_t layer) {
  size_t pages = 0;
  for (const Member& member : members_)
    pages += static_cast<size_t>(pages_for(member.text->memory->tokens));
  pointers_.resize(2 * pages);
  const void** next = pointers_.data();
  std::vector<PagedText> spans;
  int64_t row = 0;
  const CachedText::Memory* before = nullptr;
  for (const auto& [text, tokens, horizon] : members_) {
    if (text->memory.get() == before) {  // one more beam of the same text: merge the spans
      spans.back().queries += tokens;
      row += tokens;
      continue;
    }
    before = text->memory.get();
    const auto& [k, v] = before->layers[static_cast<size_t>(layer)];
    PagedText& span = spans.emplace_back();
    span = {.row = row, .queries = tokens, .keys = before->tokens, .mask = {}};
    span.mask.valid = before->valid;
    span.key_pages = next;
    for (int64_t page = 0; page < k.dim(0); ++page) *next++ = at(In(k), page * k.dim(1)).data;
    span.value_pages = next;
    for (int64_t page = 0; page < v.dim(0); ++page) *next++ = at(In(v), page * v.dim(1)).data;
    row += tokens;
  }
  return spans;
}

}  // namespace fovea::model
