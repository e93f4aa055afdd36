#pragma once

#include <cstdint>
#include <string>

namespace fovea {

// The characters of a class (unicode.h) that the PCRE2 of this machine does not know yet, to be
// written within a set: "\x{10d40}-\x{10d49}\x{1c89}".
std::string younger_than_pcre2(uint16_t any);

}  // namespace fovea
