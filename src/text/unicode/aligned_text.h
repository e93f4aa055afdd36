#pragma once

// A text that a tokenizer rewrites, with the original position of each byte. The alignment follows
// the rules of Hugging Face's NormalizedString, so that the offsets are the same. Positions are
// kept only if offsets are requested.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "unicode/alignment.h"
#include "unicode/growth_limit.h"

namespace fovea::text {

class AlignedText {
 public:
  // Starts with this text, which must stay valid until it is rewritten. `origin` is its position in
  // the original text. Growth is charged to the limit, which must also stay valid.
  void assign(std::string_view text, uint32_t origin, bool aligned, GrowthLimit& limit);
  // Starts with a span of another text, which must not change until this text is rewritten.
  void assign(const AlignedText& other, Span stretch);

  std::string_view text() const { return text_; }
  std::string_view text(Span stretch) const {
    return text_.substr(stretch.begin, stretch.end - stretch.begin);
  }
  bool aligned() const { return aligned_; }
  GrowthLimit& limit() const { return *limit_; }
  // Returns the bytes of memory reserved for rewritten text.
  size_t capacity() const { return buffers_[0].capacity() + buffers_[1].capacity(); }
  // Returns the span of the original text that a span came from; requires alignment.
  Span origin(Span stretch) const;
  // Returns the original position of the beginning of a span. Without alignment, it is correct only
  // for the beginning of the text, or if the text was not rewritten.
  uint32_t start(Span stretch) const;

 private:
  friend class Rewriter;
  Span origin_of(size_t byte, size_t& hint) const {
    return alignment_->origin(offset_ + byte, text_, offset_, hint);
  }

  std::string_view text_;
  std::string buffers_[2];  // at most one of them holds text_
  Alignment alignments_[2];
  const Alignment* alignment_ = nullptr;  // of a text; text_ begins at its byte offset_
  size_t offset_ = 0;
  mutable size_t hint_ = 0;
  GrowthLimit* limit_ = nullptr;
  uint32_t start_ = 0;
  bool aligned_ = false, current_ = false;
};

// Builds the rewritten text from the current one, from beginning to end.
class Rewriter {
 public:
  explicit Rewriter(AlignedText& text);

  // Continues with the span of the text that starts at `begin`: characters inserted there do not
  // belong to the previous span.
  void enter(size_t begin) { at_ = begin_ = begin; }
  size_t size() const { return out_.size(); }

  void copy(size_t bytes) {  // copies the next bytes unchanged
    out_.append(in_, at_, bytes);
    if (aligned_) alignment_.append_from(*text_.alignment_, text_.offset_ + at_, bytes, hint_);
    at_ += bytes;
  }
  void skip(size_t bytes) { at_ += bytes; }
  // Adds one character. `change` describes its relation to the old text: 0 = replaces the next
  // character, 1 = is new, -n = replaces the next character and removes n more.
  void put(char32_t c, int64_t change);
  void insert(std::string_view text);                     // adds new characters
  void put_bytes(std::string_view bytes, size_t length);  // replaces the next `length` bytes
  void finish();

 private:
  Span origin_of(size_t byte) { return text_.origin_of(byte, hint_); }
  Span before();  // the span that a new character belongs to
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

}  // namespace fovea::text
