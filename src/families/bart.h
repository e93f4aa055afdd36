#pragma once

// What BART's siblings share: an encoder and a decoder under BART's keys.

#include "families/shared.h"

namespace fovea {

// Reads or writes the sizes of both stacks. What the two share besides is set in the decoder
// before; the encoder is then made from it.
void bart_sizes(Config& io, Spec& s);
Names bart_stack_names(const std::string& stack);

}  // namespace fovea
