#pragma once

// The shared parts of families like BART: an encoder and a decoder under BART's keys.

#include "families/shared.h"

namespace fovea {

// Reads or writes the sizes of both stacks. Set the other shared fields in the decoder first; the
// encoder is then copied from the decoder.
void bart_sizes(Config& io, Spec& s);
Names bart_stack_names(const std::string& stack);

}  // namespace fovea
