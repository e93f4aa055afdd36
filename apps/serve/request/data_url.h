#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace fovea::serve {

bool is_data_url(std::string_view url);

// Returns the bytes of a data: URL (RFC 2397), in base64 or with %XX. Names may be in any case;
// base64 may be wrapped, without padding, escaped by %XX, or in the alphabet for URLs. Returns
// nothing if it is malformed.
std::optional<std::string> data_url_bytes(std::string_view url);

}  // namespace fovea::serve
