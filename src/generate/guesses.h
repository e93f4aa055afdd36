#pragma once

#include <cstdint>
#include <vector>

namespace fovea {

// Guesses the tokens after ids: those that followed an earlier occurrence of the last few tokens
// (prompt lookup, a form of Leviathan et al. 2023's speculative decoding). At most `most` tokens.
std::vector<int32_t> guess_from(const std::vector<int32_t>& ids, int64_t most);

}  // namespace fovea
