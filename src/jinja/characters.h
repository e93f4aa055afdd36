#pragma once

// Characters and strings as Python has them: Unicode's properties, case, white space, lines.

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace fovea::jinja {

size_t characters(std::string_view text);  // how many
// The byte at which a character starts; text.size() for those beyond the end.
size_t byte_of(std::string_view text, size_t character);

bool is_space(char32_t c);
bool is_decimal(char32_t c);
bool is_alphanumeric(char32_t c);
bool is_printable(char32_t c);
bool is_upper(char32_t c);
bool is_lower(char32_t c);
bool is_titlecase(char32_t c);
bool is_line_end(char32_t c);
bool is_word(char32_t c);  // \w

std::string upper(std::string_view text);
std::string lower(std::string_view text);
std::string capitalize(std::string_view text);
std::string title(std::string_view text);  // str.title(), not the filter

enum class Side { left, right, both };
// Without `set`, white space goes.
std::string_view strip(std::string_view text, Side side = Side::both);
std::string_view strip(std::string_view text, std::string_view set, Side side);

std::vector<std::string_view> split_lines(std::string_view text, bool keep_ends);
// At white space, empty parts left out; at most `limit` cuts, all where it is negative.
std::vector<std::string_view> split_words(std::string_view text, int64_t limit, bool from_right);
// At a separator that is not empty.
std::vector<std::string_view> split_at(std::string_view text, std::string_view separator,
                                       int64_t limit, bool from_right);
bool is_lowercase(std::string_view text);  // has cased characters, all of them lower
bool is_uppercase(std::string_view text);
std::string quoted(std::string_view text);  // repr(text)

}  // namespace fovea::jinja
