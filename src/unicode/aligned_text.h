#pragma once

// Text on its way through a tokenizer, with the place in the original that each byte came from. The
// rules of what comes from where are those of Hugging Face's NormalizedString, so that offsets are
// equal. Where nobody asks for offsets, no places are kept.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "unicode/alignment.h"
#include "unicode/growth_limit.h"

namespace fovea {

class AlignedText {
 public:
  // The text itself, which must stay alive until it is rewritten. `origin` is where it starts in
  // the original. What makes it longer is taken from the limit, which must stay alive as well.
  void assign(std::string_view text, uint32_t origin, bool aligned, GrowthLimit& limit);
  // A stretch of another one, which must stay as it is until this one is rewritten.
  void assign(const AlignedText& other, Span stretch);

  std::string_view text() const { return text_; }
  std::string_view text(Span stretch) const {
    return text_.substr(stretch.begin, stretch.end - stretch.begin);
  }
  bool aligned() const { return aligned_; }
  GrowthLimit& limit() const { return *limit_; }
  // Where a stretch came from; needs alignment.
  Span origin(Span stretch) const;
  // Where the text starts in the original, known even without alignment as long as only the text's
  // beginning decides.
  uint32_t start(Span stretch) const;

 private:
  friend class Rewriter;
  Span origin_of(size_t byte, size_t& hint) const {
    return alignment_->origin(offset_ + byte, text_, offset_, hint);
  }

  std::string_view text_;
  std::string buffers_[2];  // text_ is in at most one of them
  Alignment alignments_[2];
  const Alignment* alignment_ = nullptr;  // text_ begins at its byte offset_
  size_t offset_ = 0;
  mutable size_t hint_ = 0;
  GrowthLimit* limit_ = nullptr;
  uint32_t start_ = 0;
  bool aligned_ = false, current_ = false;
};

// Builds the next state of a text out of its current one, from front to back.
class Rewriter {
 public:
  explicit Rewriter(AlignedText& text);

  // From here on it rewrites another stretch of the text: what is inserted at its beginning does
  // not belong to the one before.
  void enter(size_t begin) { at_ = begin_ = begin; }
  size_t size() const { return out_.size(); }

  void copy(size_t bytes) {  // the next bytes stay as they are
    out_.append(in_, at_, bytes);
    if (aligned_) alignment_.append_from(*text_.alignment_, text_.offset_ + at_, bytes, hint_);
    at_ += bytes;
  }
  void skip(size_t bytes) { at_ += bytes; }
  // One character; `change` says what became of the old ones: 0 = it takes the place of the next
  // one, 1 = it is new, -n = it takes the place of the next one and n more go.
  void put(char32_t c, int64_t change);
  void insert(std::string_view text);                     // new characters
  void put_bytes(std::string_view bytes, size_t length);  // in place of the next character
  void finish();

 private:
  Span origin_of(size_t byte) { return text_.origin_of(byte, hint_); }
  Span before();  // what a new character belongs to
  void check_size() const {
    if (out_.size() > most_) text_.limit_->refuse();
  }

  AlignedText& text_;
  std::string_view in_;
  std::string& out_;
  Alignment& alignment_;
  size_t at_ = 0, begin_ = 0, hint_ = 0, most_;
  bool aligned_;
};

}  // namespace fovea
