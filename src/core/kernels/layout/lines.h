#pragma once

// The lines of packed panels: 64 bytes, 4 for each of 16 outputs.

#include "kernels/layout/packed.h"

namespace fovea {

constexpr int64_t kLineBytes = 4 * kPanelOutputs;

}  // namespace fovea
