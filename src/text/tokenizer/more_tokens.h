#pragma once

#include <string>
#include <vector>

#include "fovea/text/tokenizer.h"

namespace fovea::text {

// Returns the tokenizer with these special tokens; those that the vocabulary lacks get the next
// ids. Throws InvalidArgument if the tokenizer has files of an older format, which cannot store
// them.
Tokenizer with_special_tokens(const Tokenizer& tokenizer, const std::vector<std::string>& texts);

}  // namespace fovea::text
