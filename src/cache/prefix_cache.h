#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "cache/kv_cache.h"

namespace fovea {

// Full pages of texts that were read, so that one which begins alike shares them. A page is found
// by the pages before it and by its tokens, never by a hash alone.
class PrefixCache {
 public:
  explicit PrefixCache(PagePool& pool) : pool_(pool) {}

  // Gives a text without pages those of the longest known beginning of ids. The last token is left
  // out: what follows it is to be computed.
  void begin(CachedText& text, const std::vector<int32_t>& ids);
  // Remembers the full pages of a text that holds ids.
  void keep(const CachedText& text, const std::vector<int32_t>& ids);
  // Forgets the page that was used least lately and has no other user; false where there is none.
  bool evict();
  int64_t pages() const { return std::ssize(entries_); }

 private:
  struct Key {
    uint64_t before;  // the number of the entry before it; 0 = it is the first
    std::vector<int32_t> tokens;
    auto operator<=>(const Key&) const = default;  // NOLINT(modernize-use-nullptr): there is none
  };
  struct Entry {
    uint64_t number;
    int32_t page;
    uint64_t used;  // when, in steps of `clock_`
    int64_t followers = 0;
  };
  using Entries = std::map<Key, Entry>;

  Entries::iterator find(uint64_t before, const std::vector<int32_t>& ids, size_t page);

  PagePool& pool_;
  Entries entries_;
  uint64_t clock_ = 0, numbers_ = 0;
};

}  // namespace fovea
