#pragma once

namespace fovea::cpu {

// Return whether the CPU's own bf16 products give the same bits as their software models on a few
// tiles of ordinary, tiny and denormal numbers. They take microseconds and require a CPU with these
// instructions.
bool native_pairs_agree();
bool native_tiles_agree();

}  // namespace fovea::cpu
