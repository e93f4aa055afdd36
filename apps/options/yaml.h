#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace fovea::cli {

// Parses a YAML document of mappings, lists and scalars. Plain scalars that are numbers, true,
// false or null in JSON have this type; all others are strings. Throws UsageError, with the line,
// for invalid YAML, repeated keys, aliases, tags, several documents and exceeded limits.
nlohmann::ordered_json parse_yaml(std::string_view text, const std::string& name);

}  // namespace fovea::cli
