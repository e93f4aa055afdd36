#pragma once

// Text on its way through a tokenizer, with the place in the original that each byte came from. The
// rules of what comes from where are those of Hugging Face's NormalizedString, so that offsets are
// equal. Where nobody asks for offsets, no places are kept.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace fovea {

// Bytes [begin, end) of a text.
struct Span {
  uint32_t begin, end;
  bool operator==(const Span&) const = default;
};

class AlignedText {
 public:
  // The text itself, which must stay alive until it is rewritten. `origin` is where it starts in
  // the original.
  void assign(std::string_view text, uint32_t origin, bool aligned);
  // A stretch of another one.
  void assign(const AlignedText& other, Span stretch);

  std::string_view text() const { return text_; }
  std::string_view text(Span stretch) const {
    return text_.substr(stretch.begin, stretch.end - stretch.begin);
  }
  bool aligned() const { return aligned_; }
  // Where a stretch came from; needs alignment.
  Span origin(Span stretch) const;
  // Where the text starts in the original, known even without alignment as long as only the text's
  // beginning decides.
  uint32_t start(Span stretch) const;

 private:
  friend class Rewriter;
  std::string_view text_;
  std::string buffers_[2];  // text_ is in at most one of them
  std::vector<Span> origin_, next_origin_;
  uint32_t start_ = 0;
  bool aligned_ = false, current_ = false;
};

// Builds the next state of a text out of its current one, from front to back.
class Rewriter {
 public:
  explicit Rewriter(AlignedText& text);

  // From here on it rewrites another stretch of the text: what is inserted at its beginning does
  // not belong to the one before.
  void enter(size_t begin);
  size_t size() const { return out_.size(); }

  void copy(size_t bytes) {  // the next bytes stay as they are
    out_.append(in_, at_, bytes);
    if (aligned_) {
      const auto from = text_.origin_.begin() + static_cast<std::ptrdiff_t>(at_);
      origin_.insert(origin_.end(), from, from + static_cast<std::ptrdiff_t>(bytes));
    }
    at_ += bytes;
  }
  void skip(size_t bytes) { at_ += bytes; }
  // One character; `change` says what became of the old ones: 0 = it takes the place of the next
  // one, 1 = it is new, -n = it takes the place of the next one and n more go.
  void put(char32_t c, int64_t change);
  void insert(std::string_view text);                     // new characters
  void replace(size_t bytes, char byte);                  // an ASCII character for the next ones
  void put_bytes(std::string_view bytes, size_t length);  // in place of the next character
  void finish();

 private:
  Span before() const;  // what a new character belongs to
  void align(Span span, size_t bytes) {
    if (aligned_) origin_.insert(origin_.end(), bytes, span);
  }

  AlignedText& text_;
  std::string_view in_;
  std::string& out_;
  std::vector<Span>& origin_;
  size_t at_ = 0, begin_ = 0;
  bool aligned_;
};

}  // namespace fovea
