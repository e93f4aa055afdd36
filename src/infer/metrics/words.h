#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace fovea::infer {

// Splits a text at Unicode white space, as Python's str.split does, and returns views into the
// text.
std::vector<std::string_view> words_of(std::string_view text);

// Returns the characters of a UTF-8 text. Does not validate it: the first byte of a character
// determines its length.
std::vector<std::string_view> characters_of(std::string_view text);

// Returns the text in lower case, character by character: a capital sigma always becomes the same
// small letter, whereas Python's str.lower has another one at the end of a word.
std::string lower_case(std::string_view text);

}  // namespace fovea::infer
