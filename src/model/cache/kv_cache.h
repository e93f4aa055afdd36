#pragma once

#include <memory>
#include <span>
#include <vector>

#include "cache/page_pool.h"

namespace fovea::model {

// The state of one text in decoding: the keys and values of its tokens, in pages, and those of the
// encoder's output, if there is one.
struct CachedText {
  // For each group of the pool, the pages in the order of the tokens; -1 = released. Empty if the
  // text has no pages.
  std::vector<std::vector<int32_t>> pages;
  int64_t length = 0;  // tokens
  // The text cannot be shortened to fewer tokens, other than 0, since layers of limited reach have
  // released or overwritten what the next token would read.
  int64_t shortest = 0;
  int64_t kept = 0;  // number of first pages that a PrefixCache stores

  // Keys and values of cross-attention: the same in every step, and shared by forks.
  struct Memory {
    struct Layer {
      Tensor keys, values;  // pages, u8 [pages, bytes]
    };
    std::vector<Layer> layers;
    int64_t tokens = 0;           // S
    std::vector<Interval> valid;  // the tokens that are not padding; empty = all
  };
  std::shared_ptr<Memory> memory;
};

// The texts of one pass: the pass's rows are the new tokens of the first text, then those of the
// second, and so on. Attention appends the keys and values of these tokens to their texts, and
// reads all keys and values.
class KvCache {
 public:
  struct Member {
    CachedText* text = nullptr;
    int64_t tokens = 0;  // rows of this pass
    // The known final length of the text, at least its length after this pass. Scaled rotary
    // frequencies depend on it.
    int64_t horizon = 0;
  };

  // A ragged batch for one pass; the texts must outlive it.
  KvCache(PagePool& pool, std::vector<Member> members);
  // `batch` texts of at most `capacity` tokens, owned by the cache, for any number of passes.
  KvCache(const PagePool::Layout& layout, int64_t batch, int64_t capacity,
          const Device& device = cpu_device());

  int64_t length() const;  // tokens of the longest text, without this pass
  int64_t total() const;   // tokens of the longest text, including this pass
  const std::vector<Member>& members() const { return members_; }
  void clear();  // removes the tokens and the encoder's output of all texts

  // Begins a pass of tokens [B, T] and takes pages for each text. Throws InvalidArgument if B * T
  // is not the number of new tokens of the members, a text exceeds the capacity, or the pool has
  // too few pages.
  void begin(int64_t B, int64_t T);
  Tensor positions() const;  // i32 [1, rows]: the positions of the rows' tokens
  // Appends the keys k [rows, G, D] and values v [rows, G, D'] of one layer to the texts; v is
  // empty if the layer stores no values.
  void append(int64_t layer, const Tensor& k, const Tensor& v);
  // Copies to row `member` of states [texts, S] a recurrent layer's state after the earlier tokens
  // of a text, if there are any.
  void load_state(int64_t layer, size_t member, const Tensor& states) const;
  // Stores row `member` of `states`, the state after the new token `token` of a text.
  void store_state(int64_t layer, size_t member, int64_t token, const Tensor& states);
  // Linear attention: the texts of this pass with their chunks, until the next call.
  std::span<const LinearText> linear_texts(int64_t layer);
  // The inputs of a convolution: stores the columns x [1, rows, width] of this pass, from column
  // `column` of a token's inputs on, and returns the `count` rows before each text's.
  struct Inputs {
    Tensor rows;                  // [texts, count, width]
    std::vector<ConvText> texts;  // refer to `rows`
  };
  Inputs append_inputs(int64_t layer, const Tensor& x, int64_t column, int64_t count);
  void end();  // call it after the last layer

  std::vector<PagedText> spans(int64_t layer, const Mask& mask);  // self-attention
  std::vector<PagedText> memory_spans(int64_t layer);             // cross-attention
  bool has_memory(int64_t layer) const;
  // Stores k and v [B, S, G, D] of the encoder's output, for each text; `valid` is
  // Pass::memory_valid.
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
  std::vector<const void*> pointers_;  // the pages of the last spans that were returned
  std::vector<LinearChunk> chunks_;    // the chunks of the last linear texts
  std::vector<LinearText> linear_texts_;
};

// Releases the pages that no further token reads, however many speculative tokens are rejected.
void release_unread(PagePool& pool, CachedText& text);
// Returns whether a group has too few free pages for `length` tokens of the text.
bool lacks_pages(const PagePool& pool, const CachedText& text, size_t group, int64_t length);
// Calls release_unread(), and takes pages until there is room for `length` tokens. Returns false,
// and takes none, if a group has too few. A shared page that will be written is copied first.
bool make_room(PagePool& pool, CachedText& text, int64_t length);
// Shortens the text to at most `length` tokens, or to none if that is less than text.shortest.
// Releases the pages after them.
void shorten(PagePool& pool, CachedText& text, int64_t length);
// Returns a copy of the text that shares its pages.
CachedText forked(PagePool& pool, const CachedText& text);

}  // namespace fovea::model
