#pragma once

// Operations on strings, as in Python: characters, case, white space, lines.

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace fovea::text::jinja {

class Runtime;

size_t characters(std::string_view text);  // the number of characters
// Returns the byte at which a character starts; text.size() for characters beyond the end.
size_t byte_of(std::string_view text, size_t character);

bool is_space(char32_t c);
bool is_word(char32_t c);  // \w of Python

std::string upper(std::string_view text);
std::string lower(std::string_view text);
std::string capitalize(std::string_view text);
std::string title(std::string_view text);        // str.title(): words are runs of letters
std::string title_words(std::string_view text);  // the filter: spaces, - and ([{< end words

enum class Side { left, right, both };
std::string_view strip(std::string_view text, Side side = Side::both);  // removes white space
std::string_view strip(std::string_view text, std::string_view set, Side side);

std::vector<std::string_view> split_lines(std::string_view text);
// Splits at white space, without empty parts. Splits at most `limit` times; without a limit if it
// is negative. Fails if values of the parts would hold too much memory.
std::vector<std::string_view> split_words(Runtime& runtime, std::string_view text, int64_t limit);
// Splits at a separator, which must not be empty; `limit` and failures as in split_words(). If
// `from_right` is set, starts with the last separator.
std::vector<std::string_view> split_at(Runtime& runtime, std::string_view text,
                                       std::string_view separator, int64_t limit, bool from_right);

std::string escape_html(std::string_view text);  // escapes & < > ' "
std::string quoted(std::string_view text);       // repr of a string

}  // namespace fovea::text::jinja
