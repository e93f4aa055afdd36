#include "kernels/cpu/cpu_features.h"

namespace fovea {

std::string missing_cpu_features() { return {}; }

}  // namespace fovea
