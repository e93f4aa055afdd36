#include "unicode/utf8.h"

#include <algorithm>
#include <bit>
#include <cstring>

namespace fovea::text::utf8 {
namespace {

uint32_t byte_at(std::string_view text, size_t i) { return static_cast<uint8_t>(text[i]); }

bool continues(std::string_view text, size_t i) {
  return i < text.size() && (byte_at(text, i) & 0xC0u) == 0x80u;
}

// Returns the length of the sequence that starts with this byte; 0 if none does (Unicode 15, table
// 3-7).
uint32_t length_from(uint32_t lead) {
  if (lead < 0x80) return 1;
  if (lead < 0xC2) return 0;  // a continuation byte, or an overlong form of ASCII
  if (lead < 0xE0) return 2;
  if (lead < 0xF0) return 3;
  return lead < 0xF5 ? 4 : 0;
}

size_t ascii_prefix(std::string_view text) {
  size_t i = 0;
  for (uint64_t eight; i + 8 <= text.size(); i += 8) {
    std::memcpy(&eight, text.data() + i, 8);
    eight &= 0x8080808080808080u;
    if (eight != 0) return i + static_cast<size_t>(std::countr_zero(eight)) / 8;
  }
  while (i < text.size() && byte_at(text, i) < 0x80) ++i;
  return i;
}

}  // namespace

Character first(std::string_view text) {
  const Character bad = {replacement, 1, false};
  const uint32_t lead = byte_at(text, 0), length = length_from(lead);
  if (length == 1) return {lead, 1, true};
  if (length == 0) return bad;
  uint32_t code_point = lead & (0x7Fu >> length);
  for (uint32_t i = 1; i < length; ++i) {
    if (!continues(text, i)) return bad;
    code_point = code_point << 6 | (byte_at(text, i) & 0x3Fu);
  }
  const bool overlong = code_point < (length == 3 ? 0x800u : length == 4 ? 0x10000u : 0x80u);
  const bool surrogate = code_point >= 0xD800 && code_point < 0xE000;
  if (overlong || surrogate || code_point >= code_points) return bad;
  return {code_point, length, true};
}

Character last(std::string_view text) {
  constexpr size_t kLongest = 4;
  size_t at = text.size() - 1;
  while (at > 0 && text.size() - at < kLongest && (byte_at(text, at) & 0xC0) == 0x80) --at;
  return first(text.substr(at));
}

size_t valid_prefix(std::string_view text) {
  size_t i = 0;
  while (i < text.size()) {
    i += ascii_prefix(text.substr(i));
    while (i < text.size() && byte_at(text, i) >= 0x80) {
      if (byte_at(text, i) >= 0xC2 && byte_at(text, i) < 0xE0 && continues(text, i + 1)) {
        i += 2;
        continue;
      }
      const Character character = first(text.substr(i));
      if (!character.valid) return i;
      i += character.bytes;
    }
  }
  return i;
}

size_t incomplete_suffix(std::string_view text) {
  for (size_t bytes = 1; bytes <= std::min<size_t>(3, text.size()); ++bytes) {
    const uint32_t byte = byte_at(text, text.size() - bytes);
    if ((byte & 0xC0u) == 0x80u) continue;
    return length_from(byte) > bytes ? bytes : 0;
  }
  return 0;
}

void append(std::string& text, char32_t code_point) {
  const auto push = [&](uint32_t byte) { text.push_back(static_cast<char>(byte)); };
  if (code_point < 0x80) return push(code_point);
  if (code_point < 0x800) {
    push(0xC0u | code_point >> 6);
  } else {
    if (code_point < 0x10000) {
      push(0xE0u | code_point >> 12);
    } else {
      push(0xF0u | code_point >> 18);
      push(0x80u | (code_point >> 12 & 0x3Fu));
    }
    push(0x80u | (code_point >> 6 & 0x3Fu));
  }
  push(0x80u | (code_point & 0x3Fu));
}

std::string repaired(std::string_view text) {
  std::string result;
  result.reserve(text.size());
  while (!text.empty()) {
    const size_t valid = valid_prefix(text);
    result.append(text.substr(0, valid));
    text.remove_prefix(valid);
    if (text.empty()) break;
    append(result, replacement);
    text.remove_prefix(1);
  }
  return result;
}

}  // namespace fovea::text::utf8
