#include "fovea/core/machine.h"

namespace fovea {

std::string version() { return FOVEA_VERSION; }

}  // namespace fovea
