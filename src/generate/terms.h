#pragma once

#include <string>
#include <utility>
#include <vector>

#include "fovea/tokenizer.h"

namespace fovea {

// A terminology: target terms by source term.
class Terms {
 public:
  Terms() = default;
  // Reads a table (see read_table()) of rows "source term<TAB>target term"; rows that begin with #
  // are skipped. Throws BadFile, naming the line, if a row has another form or if the tokenizer
  // cannot write the target term.
  Terms(const std::string& path, const Tokenizer& target);

  // Returns the target terms of the source terms in a line, as whole words, in the order of the
  // file. A source term within a longer one, at the same place, does not count.
  std::vector<std::string> targets_in(const std::string& line) const;

 private:
  std::vector<std::pair<std::string, std::string>> terms_;
};

}  // namespace fovea
