#pragma once

#include <string>

#include "fovea/text/tokenizer.h"

namespace fovea::text {

// Returns how the vocabulary of `other` differs from that of `tokenizer`, for an error: "the
// vocabulary has ..."; empty if all ids have the same texts.
std::string difference(const Tokenizer& tokenizer, const Tokenizer& other);

}  // namespace fovea::text
