#include "json_text.h"

#include <nlohmann/json.hpp>

namespace fovea::cli {

std::string json_text(const nlohmann::ordered_json& json) {
  return json.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

}  // namespace fovea::cli
