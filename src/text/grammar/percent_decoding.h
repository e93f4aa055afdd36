#pragma once

#include <string>

namespace fovea::text {

// Returns the text of a part of a URI (RFC 3986): %20 is a space. Other uses of % stay.
std::string percent_decoded(const std::string& text);

}  // namespace fovea::text
