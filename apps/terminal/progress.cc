#include "terminal/progress.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "terminal/terminal.h"

namespace fovea::cli {

ProgressLine::ProgressLine() : terminal_(is_terminal(Channel::error)) {}

ProgressLine::~ProgressLine() { clear(); }

void ProgressLine::show(double fraction, const std::string& details, const std::string& plain,
                        bool now) {
  // The line is redrawn often on a terminal, and printed rarely in a log.
  const auto pause = terminal_ ? std::chrono::milliseconds(100) : std::chrono::milliseconds(5000);
  const Clock::time_point time = Clock::now();
  if (!now && time - last_ < pause) return;
  last_ = time;
  if (!terminal_) return note(plain + "\n");

  const int width = terminal_width() - 1;  // the last column would wrap
  const int rest = width - static_cast<int>(details.size()) - 7;
  std::string line = fmt::format("{:3.0f}% ", std::floor(100 * std::clamp(fraction, 0.0, 1.0)));
  if (rest >= 8) line += bar(fraction, std::min(rest, 30), can_utf8()) + " ";
  line += details;
  if (rest < 8 && static_cast<int>(line.size()) > width)
    line.resize(static_cast<size_t>(std::max(width, 0)));
  shown_ = line;
  note("\r" + line + "\x1b[K");
}

void ProgressLine::above(const std::string& text) {
  const std::string again = shown_;
  clear();
  note(text + "\n");
  if (!again.empty()) note(again);
  shown_ = again;
}

void ProgressLine::clear() {
  if (!shown_.empty()) note("\r\x1b[K");
  shown_.clear();
}

std::string bar(double fraction, int width, bool utf8) {
  static const std::array<const char*, 8> eighths = {" ", "▏", "▎", "▍", "▌", "▋", "▊", "▉"};
  const int parts = static_cast<int>(std::clamp(fraction, 0.0, 1.0) * width * 8);
  std::string line = utf8 ? "▕" : "[";
  for (int column = 0; column < width; ++column) {
    const int part = std::clamp(parts - column * 8, 0, 8);
    if (!utf8) {
      line += part == 8 ? '#' : '.';
    } else {
      line += part == 8 ? "█" : eighths[static_cast<size_t>(part)];
    }
  }
  return line + (utf8 ? "▏" : "]");
}

std::string duration(double seconds) {
  if (!(seconds >= 0) || seconds > 1e9) return "?";
  const auto whole = std::lround(seconds);
  const long hours = whole / 3600, minutes = whole / 60 % 60, rest = whole % 60;
  if (hours > 0) return fmt::format("{}:{:02}:{:02}", hours, minutes, rest);
  return fmt::format("{}:{:02}", minutes, rest);
}

std::string amount(double value) {
  if (value >= 1e9) return fmt::format("{:.2f}G", value / 1e9);
  if (value >= 1e6) return fmt::format("{:.2f}M", value / 1e6);
  if (value >= 1e4) return fmt::format("{:.1f}k", value / 1e3);
  return fmt::format("{:.0f}", value);
}

std::string memory(double bytes) {
  if (bytes >= 1e9) return fmt::format("{:.1f} GB", bytes / 1e9);
  return fmt::format("{:.0f} MB", std::ceil(bytes / 1e6));
}

}  // namespace fovea::cli
