#pragma once

// Splits a text into passages, each small enough to have one topic and to fit into the model.

#include <string_view>
#include <vector>

#include "fovea/text/tokenizer.h"

namespace fovea::infer {

struct PassageRules {
  int64_t most_tokens = 256;
  int64_t overlap_tokens = 32;  // maximum tokens repeated from the previous passage
};

struct PassageSpan {
  size_t begin, end;        // range of bytes in the text
  int64_t line, last_line;  // first and last line, from 1
  bool operator==(const PassageSpan&) const = default;
};

// Returns the passages of a text. A paragraph is a passage, but a short one is joined with the next
// if they fit, and a long one is split between sentences. Each part of a long paragraph except the
// first repeats the preceding sentences that fit into the overlap. A sentence that is too long is
// split between tokens. A blank text has no passages. The text must be valid UTF-8.
std::vector<PassageSpan> cut_passages(std::string_view text, const PassageRules& rules,
                                      const text::Tokenizer& tokenizer);

}  // namespace fovea::infer
