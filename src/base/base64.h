#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace fovea {

// The bytes that a text in base64 (RFC 4648, padded) stands for; none if it is damaged.
std::optional<std::string> from_base64(std::string_view text);

}  // namespace fovea
