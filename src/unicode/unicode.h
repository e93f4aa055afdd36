#pragma once

// What characters are. The classes are those that Hugging Face tokenizers sees: its parts take them
// from several libraries, so there is more than one class of punctuation, of marks and of words.

#include <array>
#include <cstdint>
#include <string_view>

namespace fovea::unicode {

enum Class : uint16_t {
  letter = 1 << 0,       // \p{L} of a pattern
  upper = 1 << 1,        // \p{Lu} and \p{Lt}
  lower = 1 << 2,        // \p{Ll}
  number = 1 << 3,       // \p{N}
  mark = 1 << 4,         // \p{M}
  punctuation = 1 << 5,  // \p{P}
  symbol = 1 << 6,       // \p{S}
  space = 1 << 7,        // \s of a pattern, and white space everywhere else
  word = 1 << 8,         // \w of a pattern
  plain_word = 1 << 9,   // \w of the Whitespace pre-tokenizer and of added tokens
  digit = 1 << 10,       // of the Digits pre-tokenizer
  separator = 1 << 11,   // of the pre-tokenizers Punctuation and BertPreTokenizer
  control = 1 << 12,     // what BertNormalizer's clean_text removes
  accent = 1 << 13,      // what BertNormalizer's strip_accents removes
  combining = 1 << 14,   // what StripAccents removes
};

// Classes by code point in two steps: pages of 256, equal neighbours shared.
struct Classes {
  Classes();
  uint16_t of(char32_t c) const { return pages[page_of[c >> 8]][c & 0xFF]; }

  std::array<uint16_t, 0x1100> page_of;
  std::array<std::array<uint16_t, 256>, 512> pages;
};
extern const Classes classes;

inline bool is(char32_t c, uint16_t any) { return (classes.of(c) & any) != 0; }
bool is_chinese(char32_t c);  // as BertNormalizer sees it

// The lower-case form, one or two characters long (0 for none).
std::array<char32_t, 2> lowercase(char32_t c);

// The script as SentencePiece counts it: Hiragana, Katakana and the mark of long vowels are Han.
// Only equality means something; 0 for a space, which is of any script.
int script(char32_t c);

}  // namespace fovea::unicode
