#include "cache/prefix_cache.h"

#include <algorithm>
#include <utility>

namespace fovea::model {

PrefixCache::Key PrefixCache::key_of(uint64_t before, const std::vector<int32_t>& ids, size_t page,
                                     const PageContents& contents) {
  const auto begin = ids.begin() + static_cast<std::ptrdiff_t>(page) * kPageTokens;
  const auto found = contents.find(page);
  return {before,
          {begin, begin + kPageTokens},
          found == contents.end() ? std::string() : found->second};
}

// Returns whether all pages that are read after the prefix are present.
bool PrefixCache::continues(const std::vector<Entry*>& prefix) const {
  const int64_t length = std::ssize(prefix) * kPageTokens;
  for (size_t group = 1; group < pool_.groups(); ++group)
    for (size_t page = 0; page < prefix.size(); ++page)
      if (prefix[page]->pages[group] < 0 &&
          pool_.reach(group).reads(static_cast<int64_t>(page), length))
        return false;
  return true;
}

void PrefixCache::begin(CachedText& text, const std::vector<int32_t>& ids, uint64_t kind,
                        const PageContents& contents) {
  ++clock_;
  std::vector<Entry*> prefix;
  const size_t full = ids.empty() ? 0 : (ids.size() - 1) / kPageTokens;
  while (prefix.size() < full) {
    const auto found = entries_.find(
        key_of(prefix.empty() ? kind : prefix.back()->number, ids, prefix.size(), contents));
    if (found == entries_.end()) break;
    prefix.push_back(&found->second);
  }
  while (!continues(prefix)) prefix.pop_back();
  if (prefix.empty()) return;
  text.pages.resize(pool_.groups());
  text.kept = std::ssize(prefix);
  text.length = text.kept * kPageTokens;
  if (pool_.groups() > 1) text.shortest = text.length;
  for (size_t page = 0; page < prefix.size(); ++page) {
    prefix[page]->used = clock_;
    for (size_t group = 0; group < pool_.groups(); ++group) {
      int32_t shared = prefix[page]->pages[group];
      if (!pool_.reach(group).reads(static_cast<int64_t>(page), text.length)) shared = -1;
      if (shared >= 0) pool_.share(group, shared);
      text.pages[group].push_back(shared);
    }
  }
}

void PrefixCache::keep(CachedText& text, const std::vector<int32_t>& ids, int64_t length,
                       uint64_t kind, const PageContents& contents) {
  ++clock_;
  text.kept = length / kPageTokens;
  uint64_t before = kind;
  Entry* parent = nullptr;
  for (size_t page = 0; page < static_cast<size_t>(text.kept); ++page) {
    const Key key = key_of(before, ids, page, contents);
    auto found = entries_.find(key);
    if (found == entries_.end()) {
      const std::vector<int32_t> missing(pool_.groups(), -1);
      found = entries_.emplace(key, Entry{++numbers_, missing, clock_}).first;
      if (parent != nullptr) ++parent->followers;
    }
    Entry& entry = found->second;
    for (size_t group = 0; group < pool_.groups(); ++group) {
      int32_t &own = text.pages[group][page], &stored = entry.pages[group];
      if (own < 0 || own == stored) continue;
      if (stored < 0) {
        stored = own;
      } else {  // another text with this prefix was read at the same time
        pool_.release(group, std::exchange(own, stored));
      }
      pool_.share(group, stored);
    }
    entry.used = clock_;
    before = entry.number;
    parent = &entry;
  }
}

PrefixCache::Contents PrefixCache::contents(const std::vector<int32_t>& ids) {
  std::vector<const Entry*> prefix;
  while (prefix.size() < ids.size() / kPageTokens) {
    const auto found =
        entries_.find(key_of(prefix.empty() ? 0 : prefix.back()->number, ids, prefix.size(), {}));
    if (found == entries_.end()) break;
    prefix.push_back(&found->second);
  }
  const auto count = std::ssize(prefix);
  Contents all;
  all.tokens.assign(ids.begin(), ids.begin() + count * kPageTokens);
  for (size_t group = 0; group < pool_.groups(); ++group) {
    Contents::Group& one = all.groups.emplace_back();
    const int64_t bytes = pool_.page_bytes(group);
    if (bytes > 0) one.pages = zeros({count, bytes}, DType::u8);
    for (int64_t page = 0; page < count; ++page) {
      const int32_t stored = prefix[static_cast<size_t>(page)]->pages[group];
      one.present.push_back(stored >= 0);
      if (stored >= 0) pool_.read_page(group, stored, one.pages, page);
    }
  }
  return all;
}

void PrefixCache::restore(const Contents& contents, int64_t count) {
  CachedText text;
  text.length = count * kPageTokens;
  for (size_t group = 0; group < pool_.groups(); ++group) {
    std::vector<int32_t>& pages = text.pages.emplace_back(static_cast<size_t>(count), -1);
    const Contents::Group& one = contents.groups[group];
    for (int64_t page = count; page-- > 0;) {  // a text that goes on reads the last pages
      const auto index = static_cast<size_t>(page);
      if (one.present[index] == 0) continue;
      pages[index] = pool_.take(group);
      if (pages[index] >= 0) pool_.write_page(group, pages[index], one.pages, page);
    }
  }
  keep(text, contents.tokens, text.length);
  shorten(pool_, text, 0);
}

bool PrefixCache::make_room(CachedText& text, int64_t length) {
  if (model::make_room(pool_, text, length)) return true;
  for (size_t group = 0; group < pool_.groups(); ++group)
    while (lacks_pages(pool_, text, group, length))
      if (!evict(group)) return false;
  return model::make_room(pool_, text, length);
}

int64_t PrefixCache::pages(size_t group) const {
  return std::count_if(entries_.begin(), entries_.end(),
                       [&](const auto& known) { return known.second.pages[group] >= 0; });
}

// Removes the least recently used page of a group that no text uses. A page of group 0 is removed
// with its entry, and only if no other entry follows. Returns false if no page can be removed.
bool PrefixCache::evict(size_t group) {
  auto oldest = entries_.end();
  for (auto entry = entries_.begin(); entry != entries_.end(); ++entry) {
    const Entry& e = entry->second;
    if (e.pages[group] < 0 || pool_.users(group, e.pages[group]) > 1) continue;
    if (group == 0 && e.followers > 0) continue;
    if (oldest == entries_.end() || e.used < oldest->second.used) oldest = entry;
  }
  if (oldest == entries_.end()) return false;
  if (group > 0) {
    pool_.release(group, std::exchange(oldest->second.pages[group], -1));
    return true;
  }
  const uint64_t before = oldest->first.before;
  for (size_t each = 0; each < pool_.groups(); ++each)
    if (const int32_t page = oldest->second.pages[each]; page >= 0) pool_.release(each, page);
  entries_.erase(oldest);
  for (auto& [key, entry] : entries_)
    if (entry.number == before) --entry.followers;
  return true;
}

}  // namespace fovea::model
