#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "fovea/infer/estimate.h"

namespace fovea::cli {

// "0.7150 (0.6930 to 0.7370)"; with a sign if `sign`.
std::string text_of(const infer::Estimate& estimate, bool sign = false);
nlohmann::ordered_json json_of(const infer::Estimate& estimate);

}  // namespace fovea::cli
