#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace fovea {

// Decodes a padded base64 string (RFC 4648). Returns nothing if it is invalid.
std::optional<std::string> from_base64(std::string_view text);

}  // namespace fovea
