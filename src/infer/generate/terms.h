#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "fovea/text/tokenizer.h"

namespace fovea::infer {

// Returns the first offset, not before `from`, where `words` are in a line and not within a longer
// word; npos if the line lacks them. Text in scripts without spaces may contain them anywhere.
size_t find_words(std::string_view line, std::string_view words, size_t from = 0);
// Return whether a text ends with a character of a word, and whether it begins with one (or with
// bytes in the middle of a character).
bool ends_in_word(std::string_view text);
bool begins_in_word(std::string_view text);

// A terminology: target terms by source term.
class Terms {
 public:
  Terms() = default;
  // Reads a table (see read_table()) of rows "source term<TAB>target term"; rows that begin with #
  // are skipped. Throws BadFile, naming the line, if a row has another form or if the tokenizer
  // cannot write the target term.
  Terms(const std::string& path, const text::Tokenizer& target);

  // Returns the target terms of the source terms in a line, as whole words, in the order of the
  // file. A source term within a longer one, at the same offset, does not count.
  std::vector<std::string> targets_in(const std::string& line) const;

 private:
  std::vector<std::pair<std::string, std::string>> terms_;
};

}  // namespace fovea::infer
