#pragma once

#include <string_view>
#include <vector>

namespace fovea {

// What stands between white space (Unicode's, as Python's str.split sees it); views into the text.
std::vector<std::string_view> words_of(std::string_view text);

// The characters of a UTF-8 text; a byte that is none is one by itself.
std::vector<std::string_view> characters_of(std::string_view text);

}  // namespace fovea
