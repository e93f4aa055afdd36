#include "fovea/doctor.h"

namespace fovea {

std::string version() { return FOVEA_VERSION; }

}  // namespace fovea
