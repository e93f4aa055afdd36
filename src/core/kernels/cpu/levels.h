#pragma once

// The levels of the kernels on this architecture: instruction sets of CPUs, and software models.

#include <cstdint>
#include <span>

#include "kernels/isa.h"

namespace fovea::cpu {

struct Level {
  const char* name;
  bool (*has)();     // whether the CPU and the operating system support it
  bool (*agrees)();  // whether its bf16 products equal those of the model; null = it has none
  int64_t targets;   // Highway's targets: the widest vectors that the kernels may use
  Bf16Products bf16;
  ByteProducts bytes;  // if the CPU supports VNNI with this level's vectors
};

// Best first; each level includes those after it, and every CPU has the last one. The models are
// chosen only by name.
std::span<const Level> levels();
std::span<const Level> models();

// Limits the kernels to the vectors of a level, and to those that the CPU has.
void use_targets(const Level& level);

// Returns how products of bytes are computed at a level.
ByteProducts byte_products_of(const Level& level);

}  // namespace fovea::cpu
