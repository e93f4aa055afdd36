#pragma once

#include <memory>
#include <vector>

#include "cache/page_pool.h"

namespace fovea {

// What a decoder keeps of one text: the keys and values of its tokens, in pages, and of what an
// encoder made, if there is one.
struct CachedText {
  std::vector<int32_t> pages;
  int64_t length = 0;  // tokens

  // What cross-attention looks at: the same in every step, and for every fork.
  struct Memory {
    struct Layer {
      Tensor keys, values;  // pages, u8 [pages, bytes]
    };
    std::vector<Layer> layers;
    int64_t tokens = 0;           // S
    std::vector<Interval> valid;  // the part that is no padding, if not all
  };
  std::shared_ptr<Memory> memory;
};

// The texts that a pass goes on with: the pass's rows are the new tokens of the first, then those
// of the second, and so on. Attention puts their keys and values behind what each text has and
// looks at all of it.
class KvCache {
 public:
  struct Member {
    CachedText* text = nullptr;
    int64_t tokens = 0;  // rows of this pass
    // How long the text is known to become: scaled rotations depend on it. At least what it is
    // after this pass.
    int64_t horizon = 0;
  };

  // A ragged batch, of one pass; the texts outlive it.
  KvCache(PagePool& pool, std::vector<Member> members);
  // `batch` texts of its own, of at most `capacity` tokens, that go on together in pass after pass.
  KvCache(const PagePool::Layout& layout, int64_t batch, int64_t capacity);

  int64_t length() const;  // tokens of the longest text before this pass
  int64_t total() const;   // and with it
  const std::vector<Member>& members() const { return members_; }
  void clear();  // forgets all texts

  // Begins a pass of tokens [B, T]: gives each text pages for its share. InvalidArgument where the
  // rows or the room do not suffice.
  void begin(int64_t B, int64_t T);
  Tensor places() const;  // i32 [1, rows]: the positions of the rows' tokens
  // Puts k and v [rows, G, D] behind what is there.
  void append(int64_t layer, const Tensor& k, const Tensor& v);
  void end();  // all layers have them

  std::vector<PagedText> spans(int64_t layer, const Mask& mask);  // self-attention
  std::vector<PagedText> memory_spans(int64_t layer);             // cross-attention
  // k and v [B, S, G, D] of what an encoder made, for each text; `valid` as in Pass.
  bool has_memory(int64_t layer) const;
  void set_memory(int64_t layer, const Tensor& k, const Tensor& v,
                  const std::vector<Interval>& valid);
  const PagePool::Layout& layout() const { return pool_->layout(); }

 private:
  Tensor paged(PagePart part, const Tensor& x) const;

  std::shared_ptr<PagePool> owned_pool_;
  std::vector<std::shared_ptr<CachedText>> owned_texts_;
  PagePool* pool_;
  std::vector<Member> members_;
  int64_t capacity_;
  std::vector<const void*> pointers_;  // to the pages of the spans asked for last
};

// Takes pages until there is room for `length` tokens; false (and none taken) where the pool has
// too few. A page that is shared and would be written to is copied first.
bool make_room(PagePool& pool, CachedText& text, int64_t length);
// Gives back the pages behind the first `length` tokens.
void shorten(PagePool& pool, CachedText& text, int64_t length);
// The same text once more: its pages are shared.
CachedText forked(PagePool& pool, const CachedText& text);

}  // namespace fovea
