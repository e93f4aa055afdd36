#pragma once

// The shared parts of families like BART: an encoder and a decoder under BART's keys.

#include "families/shared.h"

namespace fovea::model {

// Reads or writes the sizes, the dropout and the other keys that these families share. Set all
// other fields of the decoder first: the encoder becomes a copy of the decoder with its own sizes.
void bart_sizes(Config& io, Spec& s);
Names bart_stack_names(const std::string& stack);

}  // namespace fovea::model
