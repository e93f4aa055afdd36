#include "cache/prefix_cache.h"

#include <algorithm>

namespace fovea {

PrefixCache::Entries::iterator PrefixCache::find(uint64_t before, const std::vector<int32_t>& ids,
                                                 size_t page) {
  const auto begin = ids.begin() + static_cast<std::ptrdiff_t>(page) * kPageTokens;
  return entries_.find({before, {begin, begin + kPageTokens}});
}

void PrefixCache::begin(CachedText& text, const std::vector<int32_t>& ids) {
  ++clock_;
  uint64_t before = 0;
  const size_t full = ids.empty() ? 0 : (ids.size() - 1) / kPageTokens;
  for (size_t page = 0; page < full; ++page) {
    const auto found = find(before, ids, page);
    if (found == entries_.end()) return;
    Entry& entry = found->second;
    entry.used = clock_;
    before = entry.number;
    pool_.share(entry.page);
    text.pages.push_back(entry.page);
    text.length += kPageTokens;
  }
}

void PrefixCache::keep(const CachedText& text, const std::vector<int32_t>& ids) {
  ++clock_;
  uint64_t before = 0;
  Entry* parent = nullptr;
  for (size_t page = 0; page < static_cast<size_t>(text.length / kPageTokens); ++page) {
    auto found = find(before, ids, page);
    if (found == entries_.end()) {
      const auto begin = ids.begin() + static_cast<std::ptrdiff_t>(page) * kPageTokens;
      const Key key{before, {begin, begin + kPageTokens}};
      found = entries_.emplace(key, Entry{++numbers_, text.pages[page], clock_}).first;
      pool_.share(text.pages[page]);
      if (parent != nullptr) ++parent->followers;
    }
    found->second.used = clock_;
    before = found->second.number;
    parent = &found->second;
  }
}

bool PrefixCache::evict() {
  auto oldest = entries_.end();
  for (auto entry = entries_.begin(); entry != entries_.end(); ++entry) {
    const Entry& e = entry->second;
    if (e.followers > 0 || pool_.users(e.page) > 1) continue;
    if (oldest == entries_.end() || e.used < oldest->second.used) oldest = entry;
  }
  if (oldest == entries_.end()) return false;
  const uint64_t before = oldest->first.before;
  pool_.release(oldest->second.page);
  entries_.erase(oldest);
  for (auto& [key, entry] : entries_)
    if (entry.number == before) --entry.followers;
  return true;
}

}  // namespace fovea
