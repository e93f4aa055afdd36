#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace fovea {

// The bytes of a base64 text (RFC 4648, padded); empty if it is invalid.
std::optional<std::string> from_base64(std::string_view text);

}  // namespace fovea
