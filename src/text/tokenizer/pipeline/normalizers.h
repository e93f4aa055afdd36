#pragma once

// The normalizers of tokenizer.json, which rewrite a text before it is split. Each is a struct with
// the fields of its JSON object and behaves like its counterpart in Hugging Face's tokenizers
// library.

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "unicode/aligned_text.h"
#include "unicode/charsmap.h"
#include "unicode/normal_forms.h"
#include "unicode/pattern.h"

namespace fovea::text {

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
using Normalizers = std::vector<Normalizer>;  // applied in order; nested sequences are flattened

void normalize(const Normalizers& normalizers, AlignedText& text);

// Writes each byte as the printable character that represents it in byte-level vocabularies.
void print_bytes(Rewriter& rewriter, std::string_view text);
std::string_view printable_byte(uint8_t byte);
// Returns the byte that a printable character represents, or -1.
int byte_of_printable(char32_t c);

// Reads this part of tokenizer.json; null = missing. Throws Unsupported, naming the JSON path, if a
// part is unknown, and BadFile if it is damaged.
Normalizers parse_normalizers(const nlohmann::json& json, const std::string& path);

}  // namespace fovea::text
