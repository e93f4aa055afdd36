#pragma once

#include <cstdint>
#include <vector>

namespace fovea {

// What may come behind ids: what followed their last few tokens where these stood before (prompt
// lookup, a form of Leviathan et al. 2023's speculative decoding). At most `most` tokens.
std::vector<int32_t> guess_from(const std::vector<int32_t>& ids, int64_t most);

}  // namespace fovea
