#pragma once

#include <string>

#include "fovea/tokenizer.h"

namespace fovea {

// Returns how the vocabulary of `other` differs from that of `tokenizer`, for an error: "the
// vocabulary has ..."; empty if all ids have the same texts.
std::string difference(const Tokenizer& tokenizer, const Tokenizer& other);

}  // namespace fovea
