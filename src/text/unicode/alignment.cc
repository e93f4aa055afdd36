#include "unicode/alignment.h"

#include <algorithm>

#include "unicode/utf8.h"

namespace fovea::text {

void Alignment::append_unchanged(size_t bytes, uint32_t origin) {
  if (bytes == 0) return;
  const uint32_t begin = size(), end = begin + static_cast<uint32_t>(bytes);
  if (!stretches_.empty() && stretches_.back().to == Stretch::unchanged &&
      stretches_.back().from + (begin - begin_of(stretches_.size() - 1)) == origin) {
    stretches_.back().end = end;
  } else {
    stretches_.push_back({end, origin, Stretch::unchanged});
  }
}

void Alignment::append_together(size_t bytes, Span span) {
  const uint32_t end = size() + static_cast<uint32_t>(bytes);
  if (!stretches_.empty() && stretches_.back().from == span.begin &&
      stretches_.back().to == span.end) {
    stretches_.back().end = end;
  } else {
    stretches_.push_back({end, span.begin, span.end});
  }
}

void Alignment::append(std::string_view characters, Span span) {
  const size_t bytes = characters.size();
  if (bytes == 0) return;
  if (span.end - span.begin == bytes && utf8::first(characters).bytes == bytes) {
    append_unchanged(bytes, span.begin);
  } else {
    append_together(bytes, span);
  }
}

void Alignment::append_from(const Alignment& other, size_t begin, size_t bytes, size_t& hint) {
  for (const size_t end = begin + bytes; begin < end;) {
    other.find(begin, hint);
    const Stretch& stretch = other.stretches_[hint];
    const size_t taken = std::min<size_t>(stretch.end, end) - begin;
    if (stretch.to == Stretch::unchanged) {
      append_unchanged(taken, stretch.from + static_cast<uint32_t>(begin - other.begin_of(hint)));
    } else {
      append_together(taken, {stretch.from, stretch.to});
    }
    begin += taken;
  }
}

void Alignment::find(size_t byte, size_t& hint) const {
  hint = std::min(hint, stretches_.size() - 1);
  while (begin_of(hint) > byte) --hint;
  while (stretches_[hint].end <= byte) ++hint;
}

Span Alignment::origin(size_t byte, std::string_view text, size_t offset, size_t& hint) const {
  find(byte, hint);
  const Stretch& stretch = stretches_[hint];
  if (stretch.to != Stretch::unchanged) return {stretch.from, stretch.to};
  size_t at = byte - offset;
  while (at > 0 && (static_cast<uint8_t>(text[at]) & 0xC0) == 0x80) --at;
  const auto begin = stretch.from + static_cast<uint32_t>(at + offset) - begin_of(hint);
  return {begin, begin + utf8::first(text.substr(at)).bytes};
}

}  // namespace fovea::text
