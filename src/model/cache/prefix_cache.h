#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "cache/kv_cache.h"

namespace fovea::model {

// What the keys of a page depend on besides its tokens and the pages before it, by the number of
// the page: the digests of images.
using PageContents = std::map<size_t, std::string>;

// Full pages of earlier texts, shared with texts that have the same prefix. A page is found by its
// tokens, its contents and the pages before it, never by a hash of them alone. Texts of different
// kinds, such as those of different adapters, never share pages. An entry has a page of each group;
// a page of limited reach may be missing, since each group removes pages when it is full.
class PrefixCache {
 public:
  // `kinds`: the number of kinds of texts.
  explicit PrefixCache(PagePool& pool, uint64_t kinds = 1) : pool_(pool), numbers_(kinds - 1) {}

  // Gives `text`, which has no pages, the pages of the longest known prefix of `ids` after which
  // every layer can continue. The last token is excluded, because its output must be computed.
  // `kind`: 0 to kinds - 1.
  void begin(CachedText& text, const std::vector<int32_t>& ids, uint64_t kind = 0,
             const PageContents& contents = {});
  // Stores the full pages of the first `length` tokens of `text`, which are those of `ids`. Pages
  // that are stored already replace those of `text`, which are equal; otherwise an entry could not
  // be removed while a text uses a later one.
  void keep(CachedText& text, const std::vector<int32_t>& ids, int64_t length, uint64_t kind = 0,
            const PageContents& contents = {});
  // Like model::make_room(), but if a group has too few free pages, first removes its least
  // recently used pages that no text uses.
  bool make_room(CachedText& text, int64_t length);
  // The pages of a prefix as tensors, for a file.
  struct Contents {
    std::vector<int32_t> tokens;  // of full pages
    struct Group {
      Tensor pages;                  // u8 [pages, page_bytes]; empty if no layer is in the group
      std::vector<int32_t> present;  // by page: 0 = missing
    };
    std::vector<Group> groups;
  };
  // Returns the longest known prefix of `ids` without contents of pages.
  Contents contents(const std::vector<int32_t>& ids);
  // Stores the first `count` pages; group 0 of the pool must have as many free pages.
  void restore(const Contents& contents, int64_t count);
  int64_t pages(size_t group) const;  // number of pages that the cache stores

 private:
  struct Key {
    uint64_t before;  // the number of the previous entry; less than kinds = none, of this kind
    std::vector<int32_t> tokens;
    std::string contents;
    auto operator<=>(const Key&) const = default;
  };
  struct Entry {
    uint64_t number;
    std::vector<int32_t> pages;  // by group; -1 = missing, never in group 0
    uint64_t used;               // value of `clock_` at the last use
    int64_t followers = 0;       // number of entries that directly follow this one
  };
  using Entries = std::map<Key, Entry>;

  static Key key_of(uint64_t before, const std::vector<int32_t>& ids, size_t page,
                    const PageContents& contents);
  bool continues(const std::vector<Entry*>& prefix) const;
  bool evict(size_t group);

  PagePool& pool_;
  Entries entries_;
  uint64_t clock_ = 0, numbers_;  // the number of the last entry
};

}  // namespace fovea::model
