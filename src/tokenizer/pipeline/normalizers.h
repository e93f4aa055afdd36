#pragma once

// The normalizers of tokenizer.json: what a text becomes before it is cut. Each is a struct with
// the fields of its JSON; `normalize` does what the part of that name in Hugging Face tokenizers
// does.

#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "unicode/aligned_text.h"
#include "unicode/charsmap.h"
#include "unicode/normal_forms.h"
#include "unicode/pattern.h"

namespace fovea {

struct UnicodeForm {
  NormalForm form;
};
struct Nmt {};
struct Lowercase {};
struct StripAccents {};
struct ByteLevelNormalizer {};
struct Strip {
  bool left, right;
};
struct Prepend {
  std::string text;
};
struct Append {
  std::string text;
};
struct Replace {
  Pattern pattern;
  std::string content;
};
struct BertNormalizer {
  bool clean_text, handle_chinese_chars, strip_accents, lowercase;
};
using Normalizer = std::variant<UnicodeForm, Nmt, Lowercase, StripAccents, ByteLevelNormalizer,
                                Strip, Prepend, Append, Replace, BertNormalizer, Charsmap>;
using Normalizers = std::vector<Normalizer>;  // one after the other; nested sequences are flat

void normalize(const Normalizers& normalizers, AlignedText& text);

// Each byte as the printable character that byte-level vocabularies write for it.
void print_bytes(Rewriter& rewriter, std::string_view text);
std::string_view printable_byte(uint8_t byte);
// The byte that a printable character stands for, or -1.
int byte_of_printable(char32_t c);

}  // namespace fovea
