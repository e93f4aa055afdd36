#pragma once

#include <cstdint>

namespace fovea::train {

// Returns whether example `i` of a list is held out, if a fraction of it is, spread evenly: of the
// first n examples floor(n * fraction).
bool is_held_out(int64_t i, double fraction);

}  // namespace fovea::train
