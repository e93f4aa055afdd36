#pragma once

#include <cstdint>
#include <string_view>

namespace fovea::text {

// Returns the hash of a text whose white space (of ASCII) is normalised: that of texts which count
// as equal. Among ten million texts, two that differ have the same hash with a probability of 3e-6.
uint64_t hash_of_words(std::string_view text);

}  // namespace fovea::text
