#pragma once

// The kernels of the CPU (entries.inc), each in the file of its name or its group's name. Every one
// dispatches once, on entry, to the widest suitable vectors that use_isa() allows.

#include <type_traits>

#include "kernels/kernels.h"

namespace fovea::cpu {

#define KERNEL(name, ...) std::type_identity_t<__VA_ARGS__> name;
#include "kernels/entries.inc"
#undef KERNEL

}  // namespace fovea::cpu
