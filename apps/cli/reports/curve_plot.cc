#include "cli/reports/curve_plot.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "terminal/terminal.h"

namespace fovea::cli {
namespace {

constexpr int kRows = 16, kMargin = 11;  // kMargin: columns of the labels and of the axis

struct Range {
  double low = std::numeric_limits<double>::infinity(), high = -low;
  int64_t last = 1;
};

Range range_of(const std::vector<std::pair<std::string, train::Curve>>& curves) {
  Range range;
  for (const auto& [name, curve] : curves)
    for (const auto& [step, value] : curve) {
      range.low = std::min(range.low, value), range.high = std::max(range.high, value);
      range.last = std::max(range.last, step);
    }
  if (!(range.high > range.low)) range.high = range.low + 1;
  return range;
}

char letter_of(size_t curve) { return static_cast<char>('a' + curve % 26); }

}  // namespace

std::string curve_plot(const std::vector<std::pair<std::string, train::Curve>>& curves,
                       const std::string& title, int width, bool utf8) {
  if (curves.empty()) return "";
  const Range range = range_of(curves);
  const int columns = std::max(10, width - kMargin);
  std::vector<std::string> rows(kRows, std::string(static_cast<size_t>(columns), ' '));
  for (size_t n = 0; n < curves.size(); ++n) {
    for (const auto& [step, value] : curves[n].second) {
      const double x = static_cast<double>(step) / static_cast<double>(range.last);
      const double y = (range.high - value) / (range.high - range.low);
      const auto column = static_cast<size_t>(std::clamp(x, 0.0, 1.0) * (columns - 1));
      rows[static_cast<size_t>(y * (kRows - 1))][column] = letter_of(n);
    }
  }
  std::string text = title + "\n";
  for (int row = 0; row < kRows; ++row) {
    const double value = range.high - (range.high - range.low) * row / (kRows - 1);
    const std::string label = row % 5 == 0 ? fmt::format("{:9.4g}", value) : std::string(9, ' ');
    text += label + (utf8 ? " │" : " |") + rows[static_cast<size_t>(row)] + "\n";
  }
  text += fmt::format("{:>11}{:>{}}\n", 0, range.last, columns - 1);
  for (size_t n = 0; n < curves.size(); ++n)
    text += fmt::format("  {}  {}\n", letter_of(n), printable(curves[n].first));
  return text;
}

}  // namespace fovea::cli
