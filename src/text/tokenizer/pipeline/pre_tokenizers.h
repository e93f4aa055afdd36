#pragma once

// The pre-tokenizers of tokenizer.json, which split a normalised text before the model encodes it.
// Each is a struct with the fields of its JSON object.

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <variant>
#include <vector>

#include "unicode/aligned_text.h"
#include "unicode/pattern.h"

namespace fovea::text {

// What happens to the matches of a pattern at which a text is split.
enum class Behavior { removed, isolated, merged_with_previous, merged_with_next, contiguous };

struct ByteLevel {
  bool add_prefix_space, use_regex;
  bool print;  // write bytes as printable characters; false if the model encodes bytes
};
enum class PrependScheme { always, first, never };
struct Metaspace {
  std::string replacement;
  PrependScheme prepend_scheme;
  bool split;
};
struct Whitespace {};
struct WhitespaceSplit {};
struct BertPreTokenizer {};
struct Split {
  Pattern pattern;
  Behavior behavior;
  bool invert;
};
struct Digits {
  bool individual;
};
struct Punctuation {
  Behavior behavior;
};
struct CharDelimiterSplit {
  char32_t delimiter;
};
struct UnicodeScripts {};
struct FixedLength {
  size_t length;
};
// Not part of tokenizer.json: splits before each mark that does not follow another mark, for a
// model whose tokens have the mark at their beginning only, so that the split only affects speed.
struct WordStarts {
  std::string mark;
};

using PreTokenizer =
    std::variant<ByteLevel, Metaspace, Whitespace, WhitespaceSplit, BertPreTokenizer, Split, Digits,
                 Punctuation, CharDelimiterSplit, UnicodeScripts, FixedLength, WordStarts>;
// Applied in order; nested sequences are flattened.
using PreTokenizers = std::vector<PreTokenizer>;

// A text and the non-empty pieces into which it is split. One object is used for many texts, to
// avoid allocations.
struct CutText {
  AlignedText text;
  std::vector<Span> pieces;
  std::vector<Span> next;          // the pieces of the next step
  std::vector<Stretch> stretches;  // stretches of one piece
};

void pre_tokenize(const PreTokenizers& pre_tokenizers, CutText& cut);

// Reads this part of tokenizer.json; null = missing. Throws Unsupported, naming the JSON path, if a
// part is unknown, and BadFile if it is damaged.
PreTokenizers parse_pre_tokenizers(const nlohmann::json& json, const std::string& path);

}  // namespace fovea::text
