#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

namespace fovea::cli {

// In one line, without its end. Bytes of a text that are no UTF-8, as a vocabulary's token may have
// them, become U+FFFD.
std::string json_text(const nlohmann::ordered_json& json);

}  // namespace fovea::cli
