#include "metrics/words.h"

#include <algorithm>
#include <array>

#include "unicode/unicode.h"
#include "unicode/utf8.h"

namespace fovea::infer {
namespace {

size_t length_at(std::string_view text, size_t at) {
  const auto lead = static_cast<unsigned char>(text[at]);
  const size_t length = lead < 0xC0 ? 1 : lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
  return std::min(length, text.size() - at);
}

bool is_space(std::string_view character) {
  if (character.size() == 1) {
    const char c = character[0];
    return c == ' ' || (c >= '\t' && c <= '\r') || (c >= '\x1c' && c <= '\x1f');
  }
  // U+2000 to U+200A
  if (character >= "\u2000" && character <= "\u200a") return true;
  constexpr std::array kSpaces = {"\u0085", "\u00a0", "\u1680", "\u2028",
                                  "\u2029", "\u202f", "\u205f", "\u3000"};
  return std::find(kSpaces.begin(), kSpaces.end(), character) != kSpaces.end();
}

}  // namespace

std::vector<std::string_view> characters_of(std::string_view text) {
  std::vector<std::string_view> characters;
  for (size_t at = 0; at < text.size(); at += characters.back().size())
    characters.push_back(text.substr(at, length_at(text, at)));
  return characters;
}

std::vector<std::string_view> words_of(std::string_view text) {
  std::vector<std::string_view> words;
  size_t begin = 0;
  const auto end_word = [&](size_t end) {
    if (end > begin) words.push_back(text.substr(begin, end - begin));
  };
  for (size_t at = 0; at < text.size();) {
    const std::string_view character = text.substr(at, length_at(text, at));
    if (is_space(character)) {
      end_word(at);
      begin = at + character.size();
    }
    at += character.size();
  }
  end_word(text.size());
  return words;
}

std::string lower_case(std::string_view text) {
  std::string lower;
  for (size_t i = 0; i < text.size();) {
    const text::utf8::Character c = text::utf8::first(text.substr(i));
    for (const char32_t part : text::unicode::lowercase(c.code_point))
      if (part != 0) text::utf8::append(lower, part);
    i += c.bytes;
  }
  return lower;
}

}  // namespace fovea::infer
