#pragma once

#include <string_view>
#include <vector>

namespace fovea {

// The words between white space (Unicode's, by the rules of Python's str.split); views into the
// text.
std::vector<std::string_view> words_of(std::string_view text);

// The characters of a UTF-8 text; an invalid byte is a separate character.
std::vector<std::string_view> characters_of(std::string_view text);

}  // namespace fovea
