#pragma once

#include <cstdint>
#include <vector>

namespace fovea {

// Guesses at most `most` tokens after `ids`: those that followed an earlier occurrence of the last
// few tokens (prompt lookup, a form of the speculative decoding of Leviathan et al. 2023).
std::vector<int32_t> guess_from(const std::vector<int32_t>& ids, int64_t most);

}  // namespace fovea
