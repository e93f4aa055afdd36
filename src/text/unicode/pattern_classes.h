#pragma once

#include <cstdint>
#include <string>

namespace fovea::text {

// Returns the characters of the classes `any` (unicode.h) that are unassigned in this machine's
// PCRE2, in the syntax of a set: "\x{10d40}-\x{10d49}\x{1c89}".
std::string younger_than_pcre2(uint16_t any);

}  // namespace fovea::text
