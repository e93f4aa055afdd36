#pragma once

namespace fovea::cpu {

// Whether the CPU's own bf16 products give the bits of their software models on a few tiles of
// ordinary, tiny and denormal numbers. Takes microseconds. The CPU must have the instructions.
bool native_pairs_agree();
bool native_tiles_agree();

}  // namespace fovea::cpu
