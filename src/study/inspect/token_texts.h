#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "fovea/study/inspect.h"

namespace fovea::study {

// Returns tokens with texts to display. The text of an id outside the vocabulary, or of any id if
// there is no tokenizer, is its number.
std::vector<InspectedToken> display_tokens(const text::Tokenizer* tokenizer,
                                           const std::vector<int32_t>& ids);
std::vector<InspectedToken> display_tokens(const model::Model& model,
                                           const std::vector<int32_t>& ids);

// Returns the tokens of a text, each with its part of the text if this is complete characters.
// `special`: add the tokenizer's special tokens; `written`: how their names in the text are read.
// If the model has no tokenizer, the text is a list of ids. Throws InvalidArgument if the text is
// too long or is no such list.
std::vector<InspectedToken> tokenized(const model::Model& model, const std::string& text,
                                      bool special,
                                      text::SpecialTokens written = text::SpecialTokens::as_text);

}  // namespace fovea::study
