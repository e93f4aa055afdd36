#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace fovea {

// How errors quote a text that came from a file or a client: one line of at most `most` bytes, cut
// between characters, then "..." if something is missing. Control characters become '?'.
std::string excerpt(std::string_view text, size_t most = 80);

}  // namespace fovea
