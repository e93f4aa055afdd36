#include "unicode/aligned_text.h"

#include <algorithm>

#include "unicode/utf8.h"

namespace fovea::text {

void AlignedText::assign(std::string_view text, uint32_t origin, bool aligned, GrowthLimit& limit) {
  text_ = text;
  start_ = origin;
  aligned_ = aligned;
  limit_ = &limit;
  offset_ = hint_ = 0;
  if (!aligned) return;
  Alignment& unchanged = alignments_[current_ ? 1 : 0];
  unchanged.clear();
  unchanged.append_unchanged(text.size(), origin);
  alignment_ = &unchanged;
}

void AlignedText::assign(const AlignedText& other, Span stretch) {
  text_ = other.text(stretch);
  start_ = other.start(stretch);
  aligned_ = other.aligned_;
  limit_ = other.limit_;
  alignment_ = other.alignment_;
  offset_ = other.offset_ + stretch.begin;
  hint_ = other.hint_;
}

Span AlignedText::origin(Span stretch) const {
  if (stretch.begin == stretch.end) return {start_ + stretch.begin, start_ + stretch.end};
  const uint32_t begin = origin_of(stretch.begin, hint_).begin;
  return {begin, origin_of(stretch.end - 1, hint_).end};
}

uint32_t AlignedText::start(Span stretch) const {
  if (aligned_ && stretch.begin < stretch.end) return origin_of(stretch.begin, hint_).begin;
  return start_ + stretch.begin;
}

Rewriter::Rewriter(AlignedText& text)
    : text_(text),
      in_(text.text_),
      out_(text.buffers_[text.current_ ? 0 : 1]),
      alignment_(text.alignments_[text.current_ ? 0 : 1]),
      most_(in_.size() + text.limit_->left()),
      aligned_(text.aligned_) {
  out_.clear();
  out_.reserve(in_.size() + 16);
  alignment_.clear();
}

Span Rewriter::before() {
  const size_t at = std::min(at_, in_.size());
  if (at > begin_) return origin_of(at - 1);
  const uint32_t start = text_.start(
      {static_cast<uint32_t>(begin_), static_cast<uint32_t>(std::max(begin_, in_.size()))});
  return {start, start};
}

void Rewriter::put(char32_t c, int64_t change) {
  const size_t size = out_.size();
  utf8::append(out_, c);
  check_size();
  if (aligned_) {
    const bool replaces = change <= 0 && at_ < in_.size();
    alignment_.append(std::string_view(out_).substr(size), replaces ? origin_of(at_) : before());
  }
  for (; change <= 0 && at_ < in_.size(); ++change) at_ += utf8::first(in_.substr(at_)).bytes;
}

void Rewriter::insert(std::string_view text) {
  out_ += text;
  check_size();
  if (aligned_) alignment_.append(text, before());
}

void Rewriter::put_bytes(std::string_view bytes, size_t length) {
  out_ += bytes;
  check_size();
  if (aligned_) alignment_.append(bytes, origin_of(at_));
  at_ += length;
}

void Rewriter::finish() {
  if (out_.size() > in_.size()) text_.limit_->spend(out_.size() - in_.size());
  text_.current_ = !text_.current_;
  text_.text_ = out_;
  text_.alignment_ = &alignment_;
  text_.offset_ = text_.hint_ = 0;
}

}  // namespace fovea::text
