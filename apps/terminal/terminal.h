#pragma once

#include <string>
#include <string_view>

namespace fovea::cli {

// Whoever read our standard output has gone: end quietly.
struct OutputClosed {};

// Results go here, unbuffered. Throws OutputClosed, or Error Failed if the bytes cannot be written.
void print(std::string_view text);
// Everything else goes to standard error.
void note(std::string_view text);

enum class Channel { output, error };
bool is_terminal(Channel channel);
int terminal_width();  // COLUMNS, else the terminal's own, else 100
bool can_colour();     // standard error is a terminal and NO_COLOR is not set
bool can_utf8();       // by LC_ALL, LC_CTYPE or LANG

std::string dim(std::string_view text);
std::string bold(std::string_view text);

// Without the characters that would command the terminal; newlines stay.
std::string printable(std::string_view text);

}  // namespace fovea::cli
