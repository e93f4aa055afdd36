#include "data/held_out.h"

#include <cmath>

namespace fovea::train {

bool is_held_out(int64_t i, double fraction) {
  const auto before = [&](int64_t n) { return std::floor(static_cast<double>(n) * fraction); };
  return before(i + 1) > before(i);
}

}  // namespace fovea::train
