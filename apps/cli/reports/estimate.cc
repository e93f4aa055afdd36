#include "cli/reports/estimate.h"

#include <fmt/format.h>

namespace fovea::cli {

std::string text_of(const infer::Estimate& e, bool sign) {
  return sign ? fmt::format("{:+.4f} ({:+.4f} to {:+.4f})", e.value, e.low, e.high)
              : fmt::format("{:.4f} ({:.4f} to {:.4f})", e.value, e.low, e.high);
}

nlohmann::ordered_json json_of(const infer::Estimate& e) {
  return {{"value", e.value}, {"low", e.low}, {"high", e.high}};
}

}  // namespace fovea::cli
