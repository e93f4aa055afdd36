#include <algorithm>
#include <cmath>
#include <set>

#include "base/error.h"
#include "base/math.h"
#include "lab/report.h"
#include "lab/table.h"

namespace fovea::lab {
namespace {

constexpr double kWidth = 720, kHeight = 420, kLeft = 64, kRight = 170, kTop = 40, kBottom = 52;
// Distinguishable with most kinds of colour blindness (Paul Tol's bright scheme).
constexpr const char* kColours[] = {"#4477aa", "#ee6677", "#228833", "#aa3377",
                                    "#ccbb44", "#66ccee", "#777777"};

std::string escaped(const std::string& text) {
  std::string out;
  for (const char c : text)
    out += c == '<' ? "&lt;" : c == '>' ? "&gt;" : c == '&' ? "&amp;" : std::string(1, c);
  return out;
}

struct Axis {
  double least, most, begin, end;  // values, and their coordinates
  bool logarithmic;
  double at(double value) const {
    const auto turned = [this](double v) { return logarithmic ? math::log(v) : v; };
    const double range = turned(most) - turned(least);
    const double share = range > 0 ? (turned(value) - turned(least)) / range : 0.5;
    return begin + (end - begin) * share;
  }
};

// The interval between ticks: 1, 2 or 5 times a power of ten, about a fifth of the range.
double tick_of(double range) {
  const double power = math::pow(10.0, std::floor(math::log10(range / 5)));
  for (const double factor : {1.0, 2.0, 5.0})
    if (range / (factor * power) <= 7) return factor * power;
  return 10 * power;
}

Axis value_axis(const LabResult& result) {
  Axis y{result.points[0].mean, result.points[0].mean, kHeight - kBottom, kTop, false};
  for (const LabPoint& p : result.points) {
    const bool bounded = std::isfinite(p.low) && std::isfinite(p.high);
    y.least = std::min({y.least, p.mean, bounded ? p.low : p.mean});
    y.most = std::max({y.most, p.mean, bounded ? p.high : p.mean});
  }
  // A margin of at least a millionth of the values: a smaller tick could be lost in rounding.
  const double size = std::max(std::abs(y.least), std::abs(y.most));
  const double margin = std::max({1e-12, 0.05 * (y.most - y.least), 1e-6 * size});
  y.least -= margin;
  y.most += margin;
  return y;
}

std::string axes_text(const LabResult& result, const Axis& x, const Axis& y) {
  std::string svg;
  const double tick = tick_of(y.most - y.least);
  for (double v = std::ceil(y.least / tick) * tick; v <= y.most; v += tick) {
    svg += fmt::format(
        "<line x1=\"{}\" x2=\"{}\" y1=\"{:.1f}\" y2=\"{:.1f}\" stroke=\"#8884\"/>\n<text x=\"{}\" "
        "y=\"{:.1f}\" text-anchor=\"end\">{:.4g}</text>\n",
        kLeft, kWidth - kRight, y.at(v), y.at(v), kLeft - 6, y.at(v) + 4,
        std::abs(v) < tick * 1e-9 ? 0 : v);
  }
  std::set<double> x_values;
  for (const LabPoint& p : result.points) x_values.insert(p.x);
  double last = -kWidth;
  for (const double v : x_values) {
    if (x.at(v) < last + 44) continue;  // labels must not overlap
    last = x.at(v);
    svg += fmt::format("<text x=\"{:.1f}\" y=\"{}\" text-anchor=\"middle\">{:.6g}</text>\n", last,
                       kHeight - kBottom + 18, v);
  }
  return svg + fmt::format(
                   "<text x=\"{}\" y=\"{}\" text-anchor=\"middle\">{}</text>\n<text "
                   "x=\"{}\" y=\"22\">{}</text>\n",
                   (kLeft + kWidth - kRight) / 2, kHeight - 12, escaped(result.experiment.axis),
                   kLeft, escaped(result.experiment.metric));
}

std::string series_text(const Table& table, const std::string& name, const char* colour,
                        const Axis& x, const Axis& y, double legend) {
  std::string points, marks;
  for (const double at : table.x_values(name)) {
    const LabPoint& p = table.at(name, at);
    points += fmt::format("{:.1f},{:.1f} ", x.at(at), y.at(p.mean));
    marks += fmt::format("<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"3\" fill=\"{}\"/>\n", x.at(at),
                         y.at(p.mean), colour);
    if (std::isfinite(p.low))
      marks += fmt::format(
          "<line x1=\"{0:.1f}\" x2=\"{0:.1f}\" y1=\"{1:.1f}\" y2=\"{2:.1f}\" stroke=\"{3}\"/>\n",
          x.at(at), y.at(p.low), y.at(p.high), colour);
  }
  return fmt::format("<polyline points=\"{}\" fill=\"none\" stroke=\"{}\" stroke-width=\"1.8\"/>\n",
                     points, colour) +
         marks +
         fmt::format("<text x=\"{}\" y=\"{}\" fill=\"{}\">{}</text>\n", kWidth - kRight + 10,
                     legend, colour, escaped(name));
}

}  // namespace

std::string line_chart(const LabResult& result, bool logarithmic) {
  Table table;
  for (const LabPoint& p : result.points)
    for (const double value : p.values) table.add(p.series, p.x, p.learning_rate, value);
  table.finish();
  Axis x{result.points[0].x, result.points[0].x, kLeft + 10, kWidth - kRight - 10, logarithmic};
  for (const LabPoint& p : result.points) {
    x.least = std::min(x.least, p.x);
    x.most = std::max(x.most, p.x);
  }
  x.logarithmic = logarithmic && x.least > 0;
  const Axis y = value_axis(result);
  std::string svg = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {} {}\" font-family=\"sans-serif\" "
      "font-size=\"12\" fill=\"#555\">\n<rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n",
      kWidth, kHeight);
  svg += axes_text(result, x, y);
  size_t number = 0;
  for (const std::string& name : table.series()) {
    svg += series_text(table, name, kColours[number % std::size(kColours)], x, y,
                       kTop + 18 * static_cast<double>(number));
    ++number;
  }
  return svg + "</svg>\n";
}

}  // namespace fovea::lab
