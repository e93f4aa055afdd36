#pragma once

// The character classes of Hugging Face's tokenizers library. The components of that library use
// several Unicode libraries, so there are several classes of punctuation, marks and words.

#include <array>
#include <cstdint>
#include <string_view>

namespace fovea::text::unicode {

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
  digit = 1 << 10,       // digits of the Digits pre-tokenizer
  separator = 1 << 11,   // separators of the Punctuation and BertPreTokenizer pre-tokenizers
  control = 1 << 12,     // removed by BertNormalizer's clean_text
  accent = 1 << 13,      // removed by BertNormalizer's strip_accents
  combining = 1 << 14,   // removed by StripAccents
};

// Maps code points to classes in two steps: pages of 256 code points; equal adjacent pages are
// shared.
struct Classes {
  Classes();
  uint16_t of(char32_t c) const { return pages[page_of[c >> 8]][c & 0xFF]; }

  std::array<uint16_t, 0x1100> page_of;
  std::array<std::array<uint16_t, 256>, 512> pages;
};
extern const Classes classes;

inline bool is(char32_t c, uint16_t any) { return (classes.of(c) & any) != 0; }
bool is_chinese(char32_t c);  // by the definition of BertNormalizer

// Returns the lower-case form: one or two characters; the second is 0 if there is only one.
std::array<char32_t, 2> lowercase(char32_t c);

// Returns the script by SentencePiece's rules: Hiragana, Katakana and the long vowel mark count as
// Han. Values can only be compared for equality. A space and unassigned code points have the value
// 0, which matches any script.
int script(char32_t c);

// Returns whether the character is of a script whose words are written without spaces between them:
// Han with Hiragana and Katakana, Thai, Lao, Khmer, Myanmar.
bool is_unspaced(char32_t c);

}  // namespace fovea::text::unicode
