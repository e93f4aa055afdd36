#pragma once

#include <string>
#include <string_view>

namespace fovea::cli {

// Thrown when the reader of standard output has closed it; the program then ends without an error.
struct OutputClosed {};

// Prints results to standard output, unbuffered. Throws OutputClosed if the reader has closed it,
// and Failed if the bytes cannot be written.
void print(std::string_view text);
// Prints everything else to standard error; ignores failures.
void note(std::string_view text);

enum class Channel { output, error };
bool is_terminal(Channel channel);
bool moves_cursor();   // TERM is set and not "dumb"
int terminal_width();  // COLUMNS, else the terminal's width, else 100
bool can_colour();  // standard error is a terminal, not a dumb one, and NO_COLOR is unset or empty
bool can_utf8();    // by LC_ALL, LC_CTYPE or LANG

std::string dim(std::string_view text);
std::string bold(std::string_view text);

// Replaces control characters by '?', keeps newlines and tabs, and removes carriage returns.
std::string printable(std::string_view text);

}  // namespace fovea::cli
