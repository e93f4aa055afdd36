#pragma once

namespace fovea::cpu {

// Whether the CPU's own products of bf16 give the bits of their software models on a few tiles of
// ordinary, tiny and denormal numbers. Takes microseconds. Only where the CPU has the instructions.
bool native_pairs_agree();
bool native_tiles_agree();

}  // namespace fovea::cpu
