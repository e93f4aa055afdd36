#pragma once

// The pre-tokenizers of tokenizer.json: where a normalised text is cut before the model sees it.
// Each is a struct with the fields of its JSON.

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "unicode/aligned_text.h"
#include "unicode/pattern.h"

namespace fovea {

// What becomes of the matches that cut a text.
enum class Behavior { removed, isolated, merged_with_previous, merged_with_next, contiguous };

struct ByteLevel {
  bool add_prefix_space, use_regex;
  bool print;  // bytes as printable characters; false if the model takes them as they are
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
// Of no tokenizer.json: cuts before each mark that does not follow another one, for a model whose
// tokens have the mark at their beginning only, so that the cut changes nothing but the speed.
struct WordStarts {
  std::string mark;
};

using PreTokenizer =
    std::variant<ByteLevel, Metaspace, Whitespace, WhitespaceSplit, BertPreTokenizer, Split, Digits,
                 Punctuation, CharDelimiterSplit, UnicodeScripts, FixedLength, WordStarts>;
using PreTokenizers = std::vector<PreTokenizer>;  // one after the other; nested sequences are flat

// A text and the pieces that it is cut into, none empty. Kept between texts, it does not allocate.
struct CutText {
  AlignedText text;
  std::vector<Span> pieces;
  std::vector<Span> next;          // while pieces are cut further
  std::vector<Stretch> stretches;  // of one piece
};

void pre_tokenize(const PreTokenizers& pre_tokenizers, CutText& cut);

}  // namespace fovea
