#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "fovea/inspect.h"

namespace fovea {

// Returns the tokens of ids, with texts to display: the number of an id that is not in the
// vocabulary.
std::vector<InspectedToken> display_tokens(const Model& model, const std::vector<int32_t>& ids);

// Returns the tokens of a text, with their parts of it; `special`: with the tokenizer's special
// tokens. If the model has no tokenizer, the text lists ids. Throws InvalidArgument if the text is
// too long.
std::vector<InspectedToken> tokenized(const Model& model, const std::string& text, bool special);

}  // namespace fovea
