#include "terminal/terminal.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <string>

#include "fovea/core/error.h"

namespace fovea::cli {
namespace {

// Returns 0 or the error number.
int write_all(int descriptor, std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = write(descriptor, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return errno;
    text.remove_prefix(static_cast<size_t>(written));
  }
  return 0;
}

std::string variable(const char* name) {
  const char* const value = std::getenv(name);
  return value ? value : "";
}

std::string styled(const char* code, std::string_view text) {
  return can_colour() ? fmt::format("\x1b[{}m{}\x1b[0m", code, text) : std::string(text);
}

}  // namespace

void print(std::string_view text) {
  const int error = write_all(STDOUT_FILENO, text);
  if (error == EPIPE) throw OutputClosed();
  if (error != 0) {
    throw Error(
        ErrorKind::Failed,
        fmt::format(
            "standard output: cannot be written ({}); expected a file or pipe with free space",
            std::strerror(error)));
  }
}

// A lost note must not stop the work.
void note(std::string_view text) { static_cast<void>(write_all(STDERR_FILENO, text)); }

bool is_terminal(Channel channel) {
  return isatty(channel == Channel::output ? STDOUT_FILENO : STDERR_FILENO) == 1;
}

int terminal_width() {
  const std::string columns = variable("COLUMNS");
  int width = 0;
  std::from_chars(columns.data(), columns.data() + columns.size(), width);
  winsize size{};
  if (width <= 0 && ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0) width = size.ws_col;
  return width > 0 ? width : 100;
}

bool moves_cursor() { return !variable("TERM").empty() && variable("TERM") != "dumb"; }

bool can_colour() {
  return is_terminal(Channel::error) && variable("NO_COLOR").empty() && variable("TERM") != "dumb";
}

bool can_utf8() {
  for (const char* name : {"LC_ALL", "LC_CTYPE", "LANG"}) {
    const std::string value = variable(name);
    if (value.empty()) continue;
    return value.find("UTF-8") != std::string::npos || value.find("utf8") != std::string::npos;
  }
  return false;
}

std::string dim(std::string_view text) { return styled("2", text); }
std::string bold(std::string_view text) { return styled("1", text); }

std::string printable(std::string_view text) {
  std::string clean;
  for (const char c : text) {
    if (c == '\r') continue;
    const auto byte = static_cast<unsigned char>(c);
    const bool control = (byte < 0x20 && c != '\n' && c != '\t') || byte == 0x7f;
    clean += control ? '?' : c;
  }
  return clean;
}

}  // namespace fovea::cli
