#pragma once

// A text cut into passages, each small enough to have one meaning and to fit into the model.

#include <string_view>
#include <vector>

#include "fovea/tokenizer.h"

namespace fovea {

struct PassageRules {
  int64_t most_tokens = 256;
  int64_t overlap_tokens = 32;  // of the sentences that a passage repeats of the one before
};

struct PassageSpan {
  size_t begin, end;        // bytes of the text
  int64_t line, last_line;  // from 1
  bool operator==(const PassageSpan&) const = default;
};

// Paragraphs are passages. Short neighbours go together; one that is too long is cut between
// sentences, and those sentences that fit into the overlap are repeated. A sentence that is too
// long is cut between tokens. Blank text has no passages. The text is valid UTF-8.
std::vector<PassageSpan> cut_passages(std::string_view text, const PassageRules& rules,
                                      const Tokenizer& tokenizer);

}  // namespace fovea
