#pragma once

// The kernels of the reference (entries.inc): naive loops that read every stored type as double,
// with every sum in double. Units are not summed separately: in double, the order of additions
// hardly affects the result.

#include <type_traits>

#include "kernels/kernels.h"

namespace fovea::reference {

#define KERNEL(name, ...) std::type_identity_t<__VA_ARGS__> name;
#include "kernels/entries.inc"
#undef KERNEL

}  // namespace fovea::reference
