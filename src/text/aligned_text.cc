#include "text/aligned_text.h"

#include <algorithm>

#include "text/utf8.h"

namespace fovea {

void AlignedText::assign(std::string_view text, uint32_t origin, bool aligned) {
  text_ = text;
  start_ = origin;
  aligned_ = aligned;
  origin_.clear();
  if (!aligned) return;
  origin_.reserve(text.size());
  for (size_t i = 0; i < text.size();) {
    const uint32_t bytes = utf8::first(text.substr(i)).bytes;
    const auto begin = static_cast<uint32_t>(origin + i);
    origin_.insert(origin_.end(), bytes, {begin, begin + bytes});
    i += bytes;
  }
}

void AlignedText::assign(const AlignedText& other, Span stretch) {
  text_ = other.text(stretch);
  start_ = other.start(stretch);
  aligned_ = other.aligned_;
  origin_.clear();
  if (aligned_)
    origin_.assign(other.origin_.begin() + stretch.begin, other.origin_.begin() + stretch.end);
}

Span AlignedText::origin(Span stretch) const {
  if (stretch.begin == stretch.end) return {start_ + stretch.begin, start_ + stretch.end};
  return {origin_[stretch.begin].begin, origin_[stretch.end - 1].end};
}

uint32_t AlignedText::start(Span stretch) const {
  if (aligned_ && stretch.begin < stretch.end) return origin_[stretch.begin].begin;
  return start_ + stretch.begin;
}

Rewriter::Rewriter(AlignedText& text)
    : text_(text),
      in_(text.text_),
      out_(text.buffers_[text.current_ ? 0 : 1]),
      origin_(text.next_origin_),
      aligned_(text.aligned_) {
  out_.clear();
  out_.reserve(in_.size() + 16);
  origin_.clear();
}

void Rewriter::enter(size_t begin) { at_ = begin_ = begin; }

Span Rewriter::before() const {
  const size_t at = std::min(at_, in_.size());
  if (at > begin_) return text_.origin_[at - 1];
  const uint32_t start = text_.start(
      {static_cast<uint32_t>(begin_), static_cast<uint32_t>(std::max(begin_, in_.size()))});
  return {start, start};
}

void Rewriter::put(char32_t c, int64_t change) {
  const size_t size = out_.size();
  utf8::append(out_, c);
  if (aligned_) {
    const bool replaces = change <= 0 && at_ < in_.size();
    align(replaces ? text_.origin_[at_] : before(), out_.size() - size);
  }
  for (; change <= 0 && at_ < in_.size(); ++change) at_ += utf8::first(in_.substr(at_)).bytes;
}

void Rewriter::insert(std::string_view text) {
  out_ += text;
  if (aligned_) align(before(), text.size());
}

void Rewriter::replace(size_t bytes, char byte) {
  out_.push_back(byte);
  if (aligned_) align(text_.origin_[at_], 1);
  at_ += bytes;
}

void Rewriter::put_bytes(std::string_view bytes, size_t length) {
  out_ += bytes;
  if (aligned_) align(text_.origin_[at_], bytes.size());
  at_ += length;
}

void Rewriter::finish() {
  text_.current_ = !text_.current_;
  text_.text_ = out_;
  if (aligned_) std::swap(text_.origin_, text_.next_origin_);
}

}  // namespace fovea
