#include "cli/reports/version_text.h"

#include <fmt/format.h>

#include "fovea/core/machine.h"

namespace fovea::cli {

std::string version_text() {
  const std::string commit = FOVEA_COMMIT;
  return fmt::format("fovea {}{}\nCPU: {}\nlibraries: {}\n", version(),
                     commit.empty() ? "" : " (commit " + commit + ")", instruction_set(),
                     FOVEA_LIBRARIES);
}

}  // namespace fovea::cli
