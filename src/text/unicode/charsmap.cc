#include "unicode/charsmap.h"

#include <utf8proc.h>

#include <cstring>

#include "base/error.h"
#include "unicode/utf8.h"

namespace fovea::text {
namespace {

bool has_leaf(uint32_t unit) { return (unit >> 8 & 1) != 0; }
uint32_t value_of(uint32_t unit) { return unit & 0x7FFFFFFF; }
uint32_t label_of(uint32_t unit) { return unit & 0x800000FF; }
uint32_t offset_of(uint32_t unit) { return unit >> 10 << ((unit & 1 << 9) >> 6); }

size_t count(std::string_view text) {
  size_t characters = 0;
  for (const char byte : text) characters += (static_cast<uint8_t>(byte) & 0xC0) != 0x80;
  return characters;
}

// Returns the length of the first grapheme cluster, in bytes.
size_t cluster_length(std::string_view text) {
  utf8proc_int32_t state = 0;
  utf8::Character last = utf8::first(text);
  size_t length = last.bytes;
  while (length < text.size()) {
    const utf8::Character next = utf8::first(text.substr(length));
    if (utf8proc_grapheme_break_stateful(static_cast<utf8proc_int32_t>(last.code_point),
                                         static_cast<utf8proc_int32_t>(next.code_point), &state)) {
      break;
    }
    length += next.bytes;
    last = next;
  }
  return length;
}

// Replaces characters. Added characters count as new; the last character written, even by an
// earlier replacement, takes the positions of removed characters, so one character is held back.
class Substitutes {
 public:
  explicit Substitutes(Rewriter& rewriter) : rewriter_(rewriter) {}

  void put(std::string_view old, std::string_view text) {
    const auto before = static_cast<int64_t>(count(old)), after = static_cast<int64_t>(count(text));
    for (int64_t i = 0; i < after; ++i) {
      const utf8::Character c = utf8::first(text);
      finish();
      last_ = c.code_point;
      change_ = i >= before ? 1 : 0;
      any_ = true;
      text.remove_prefix(c.bytes);
    }
    if (after < before) change_ += after - before;
  }
  void finish() {
    if (any_) rewriter_.put(last_, change_);
    any_ = false;
  }

 private:
  Rewriter& rewriter_;
  char32_t last_ = 0;
  int64_t change_ = 0;  // see Rewriter::put
  bool any_ = false;
};

}  // namespace

Charsmap Charsmap::parse(std::string_view bytes, const std::string& where) {
  const auto bad = [&](const char* wrong) {
    fail(ErrorKind::BadFile, "{}: {}; expected a SentencePiece charsmap", where, wrong);
  };
  Charsmap map;
  uint32_t size = 0;
  if (bytes.size() < sizeof size) bad("the charsmap is truncated");
  std::memcpy(&size, bytes.data(), sizeof size);
  bytes.remove_prefix(sizeof size);
  if (size > bytes.size() || size < 4) bad("the charsmap's trie has an invalid size");
  map.units_.resize(size / 4);
  std::memcpy(map.units_.data(), bytes.data(), map.units_.size() * 4);
  map.texts_ = bytes.substr(map.units_.size() * 4);
  if (utf8::valid_prefix(map.texts_) != map.texts_.size()) bad("the charsmap is not valid UTF-8");
  for (size_t c = 0; c < 128; ++c) {
    const char character = static_cast<char>(c);
    map.plain_[c] = !map.find({&character, 1});
  }
  return map;
}

std::optional<std::string_view> Charsmap::find(std::string_view text) const {
  uint32_t at = offset_of(units_[0]);
  for (const char c : text) {
    const auto byte = static_cast<uint8_t>(c);
    if (byte == 0) return {};
    at ^= byte;
    if (at >= units_.size() || label_of(units_[at]) != byte) return {};
    const uint32_t unit = units_[at];
    at ^= offset_of(unit);
    if (!has_leaf(unit)) continue;
    if (at >= units_.size()) return {};
    const size_t begin = value_of(units_[at]);
    if (begin > texts_.size()) return {};
    const std::string_view rest = std::string_view(texts_).substr(begin);
    return rest.substr(0, rest.find('\0'));
  }
  return {};
}

template <class Instead>
void Charsmap::rewrite_cluster(std::string_view cluster, Instead&& instead) const {
  if (cluster.size() < 6) {  // the limit of Hugging Face's library
    if (const auto text = find(cluster)) return instead(cluster, *text);
  }
  while (!cluster.empty()) {
    const std::string_view character = cluster.substr(0, utf8::first(cluster).bytes);
    instead(character, find(character).value_or(character));
    cluster.remove_prefix(character.size());
  }
}

// Returns the length of the ASCII prefix that no rule changes, whatever follows it.
size_t Charsmap::plain_prefix(std::string_view text) const {
  size_t plain = 0;
  while (plain < text.size()) {
    const auto byte = static_cast<uint8_t>(text[plain]);
    if (byte >= 128 || !plain_[byte]) break;
    ++plain;
  }
  // The next character may belong to the same cluster as the last plain character.
  const bool joined = plain > 0 && plain < text.size() &&
                      (static_cast<uint8_t>(text[plain]) >= 128 || text[plain - 1] == '\r');
  return joined ? plain - 1 : plain;
}

void Charsmap::normalize(AlignedText& text) const {
  std::string_view rest = text.text();
  if (plain_prefix(rest) == rest.size()) return;
  Rewriter rewriter(text);
  Substitutes substitutes(rewriter);
  while (!rest.empty()) {
    const size_t plain = text.aligned() ? 0 : plain_prefix(rest);
    rewriter.insert(rest.substr(0, plain));
    rest.remove_prefix(plain);
    if (rest.empty()) break;
    const std::string_view cluster = rest.substr(0, cluster_length(rest));
    rewrite_cluster(cluster, [&](std::string_view old, std::string_view instead) {
      if (text.aligned()) return substitutes.put(old, instead);
      rewriter.insert(instead);
    });
    rest.remove_prefix(cluster.size());
  }
  substitutes.finish();
  rewriter.finish();
}

}  // namespace fovea::text
