#pragma once

// SHA-256 (FIPS 180-4): identifies contents that others may try to forge.

#include <string>
#include <string_view>

namespace fovea {

std::string sha256(std::string_view bytes);  // 32 bytes

}  // namespace fovea
