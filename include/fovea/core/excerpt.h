#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace fovea {

// Shortens `text`, which may come from a file or a client, for an error message of one line.
// Returns at most `most` bytes, cut between characters, and then "..." if text is missing. Control
// characters become '?'.
std::string excerpt(std::string_view text, size_t most = 80);

}  // namespace fovea
