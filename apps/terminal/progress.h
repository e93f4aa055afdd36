#pragma once

#include <chrono>
#include <string>

namespace fovea::cli {

// Shows the progress of a long task on standard error: one line that is redrawn on a terminal,
// occasional plain lines elsewhere.
class ProgressLine {
 public:
  ProgressLine();
  ~ProgressLine();
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;

  // Shows a fraction from 0 to 1. `details` is printed next to the bar; `plain` is the line that is
  // printed without a terminal. A call within 0.1 s (without a terminal, 5 s) after the last
  // printed line prints nothing, unless `now` is true.
  void show(double fraction, const std::string& details, const std::string& plain,
            bool now = false);
  // Prints a permanent message above the progress line.
  void above(const std::string& text);
  void clear();

 private:
  using Clock = std::chrono::steady_clock;
  const bool terminal_;
  std::string shown_;  // currently on the terminal
  Clock::time_point last_;
};

std::string bar(double fraction, int width, bool utf8);
std::string duration(double seconds);  // "0:07", "12:30", "3:05:00"
std::string amount(double value);      // "950", "18.2k", "1.3M"
std::string memory(double bytes);      // "1.5 GB"

}  // namespace fovea::cli
