#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "base/math.h"
#include "log/record.h"

namespace fovea::train {
namespace {

constexpr double kWidth = 720, kHeight = 400, kLeft = 56, kRight = 44, kTop = 36, kBottom = 44;
constexpr size_t kMostPoints = 600;  // more points than columns would only enlarge the file

// The ranges of the plot; x() and y() return coordinates in the picture.
struct Scale {
  double last_step, low, high;
  double x(double step) const { return kLeft + (kWidth - kLeft - kRight) * step / last_step; }
  double y(double loss) const {
    return kTop + (kHeight - kTop - kBottom) * (high - loss) / (high - low);
  }
};

// Returns the interval between ticks: 1, 2 or 5 times a power of ten, about a fifth of the range.
double tick_of(double range) {
  const double power = math::pow(10.0, std::floor(math::log10(range / 5)));
  for (const double factor : {1.0, 2.0, 5.0})
    if (range / (factor * power) <= 7) return factor * power;
  return 10 * power;
}

// Returns the means of groups of consecutive steps, so that the noise of single batches does not
// obscure the curve.
Curve thinned(const Curve& curve) {
  const size_t run = std::max<size_t>(1, (curve.size() + kMostPoints - 1) / kMostPoints);
  Curve means;
  for (size_t begin = 0; begin < curve.size(); begin += run) {
    const size_t end = std::min(curve.size(), begin + run);
    double sum = 0;
    for (size_t i = begin; i < end; ++i) sum += curve[i].second;
    means.emplace_back(curve[end - 1].first, sum / static_cast<double>(end - begin));
  }
  return means;
}

std::string line(const Curve& curve, const Scale& scale, const char* colour, double thickness) {
  std::string points;
  for (const auto& [step, loss] : curve)
    points += fmt::format("{:.1f},{:.1f} ", scale.x(static_cast<double>(step)), scale.y(loss));
  return fmt::format("<polyline points=\"{}\" fill=\"none\" stroke=\"{}\" stroke-width=\"{}\"/>\n",
                     points, colour, thickness);
}

std::string axes(const Scale& s) {
  std::string svg;
  const double step_tick = std::max(1.0, tick_of(s.last_step)), loss_tick = tick_of(s.high - s.low);
  for (double step = 0; step <= s.last_step; step += step_tick) {
    svg += fmt::format("<text x=\"{:.1f}\" y=\"{}\" text-anchor=\"middle\">{:.0f}</text>\n",
                       s.x(step), kHeight - kBottom + 18, step);
  }
  for (double loss = std::ceil(s.low / loss_tick) * loss_tick; loss <= s.high; loss += loss_tick) {
    svg += fmt::format("<line x1=\"{}\" x2=\"{}\" y1=\"{:.1f}\" y2=\"{:.1f}\" stroke=\"#8884\"/>\n",
                       kLeft, kWidth - kRight, s.y(loss), s.y(loss));
    svg += fmt::format("<text x=\"{}\" y=\"{:.1f}\" text-anchor=\"end\">{:.{}f}</text>\n",
                       kLeft - 6, s.y(loss) + 4, loss, loss_tick < 0.1 ? 2 : 1);
  }
  svg += fmt::format("<text x=\"{}\" y=\"{}\" text-anchor=\"middle\">step</text>\n",
                     (kLeft + kWidth - kRight) / 2, kHeight - 8);
  return svg;
}

// Returns the text with the characters of mark-up escaped.
std::string escaped(const std::string& text) {
  std::string out;
  for (const char c : text)
    out += c == '<' ? "&lt;" : c == '>' ? "&gt;" : c == '&' ? "&amp;" : std::string(1, c);
  return out;
}

// Returns the range of the curves with a margin. The margin is at least a millionth of the largest
// loss: a smaller tick could be lost in rounding, and the loop over ticks would not end.
Scale scale_of(const Curve& training, const Curve& validation) {
  Scale scale{1, 1e300, -1e300};
  for (const Curve* curve : {&training, &validation}) {
    for (const auto& [step, loss] : *curve) {
      scale.last_step = std::max(scale.last_step, static_cast<double>(step));
      scale.low = std::min(scale.low, loss);
      scale.high = std::max(scale.high, loss);
    }
  }
  const double size = std::max(std::abs(scale.low), std::abs(scale.high));
  const double margin = std::max({0.01, (scale.high - scale.low) * 0.05, size * 1e-6});
  scale.low -= margin;
  scale.high += margin;
  return scale;
}

std::string dots(const Curve& curve, const Scale& scale, const char* colour) {
  std::string svg;
  for (const auto& [step, value] : curve) {
    svg += fmt::format("<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"3\" fill=\"{}\"/>\n",
                       scale.x(static_cast<double>(step)), scale.y(value), colour);
  }
  return svg;
}

// The paper and the axes of a plot.
std::string canvas(const Scale& scale) {
  return fmt::format(
             "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {} {}\" "
             "font-family=\"sans-serif\" font-size=\"12\" fill=\"#777\">\n"
             "<rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n",
             kWidth, kHeight) +
         axes(scale);
}

// Draws BLEU, which has a separate axis.
std::string course_of_bleu(const Curve& bleu, double last_step) {
  constexpr const char* kColour = "#228833";
  Scale scale{last_step, 0, 1};
  for (const auto& [step, value] : bleu) scale.high = std::max(scale.high, 1.05 * value);
  std::string svg = line(bleu, scale, kColour, 2) + dots(bleu, scale, kColour);
  const double tick = tick_of(scale.high);
  for (double value = 0; value <= scale.high; value += tick) {
    svg += fmt::format("<text x=\"{}\" y=\"{:.1f}\" fill=\"{}\">{:.{}f}</text>\n",
                       kWidth - kRight + 6, scale.y(value) + 4, kColour, value, tick < 1 ? 1 : 0);
  }
  svg += fmt::format("<text x=\"{}\" y=\"22\" text-anchor=\"end\" fill=\"{}\">BLEU {:.2f}</text>\n",
                     kWidth - kRight, kColour, bleu.back().second);
  return svg;
}

}  // namespace

std::string chart(const Curves& curves) {
  const Curve course = thinned(curves.training);
  const Curve& validation = curves.validation;
  const Scale scale = scale_of(course, validation);
  std::string svg = canvas(scale);
  svg += line(course, scale, "#4477aa", 1.2) + line(validation, scale, "#cc6677", 2);
  svg += dots(validation, scale, "#cc6677");
  svg += fmt::format("<text x=\"{}\" y=\"22\" fill=\"#4477aa\">training loss</text>\n", kLeft);
  if (!validation.empty()) {
    svg += fmt::format("<text x=\"{}\" y=\"22\" fill=\"#cc6677\">validation loss {:.4f}</text>\n",
                       kLeft + 110, validation.back().second);
  }
  if (!curves.bleu.empty()) svg += course_of_bleu(curves.bleu, scale.last_step);
  return svg + "</svg>\n";
}

std::string overlaid(const std::vector<std::pair<std::string, Curve>>& curves,
                     const std::string& title) {
  // Distinguishable with any colour vision (Tol 2021, scheme "bright").
  static constexpr const char* kColours[] = {"#4477aa", "#ee6677", "#228833", "#ccbb44",
                                             "#66ccee", "#aa3377", "#777777"};
  std::vector<Curve> thin;
  Scale scale{1, 1e300, -1e300};
  for (const auto& [name, curve] : curves) {
    thin.push_back(thinned(curve));
    const Scale one = scale_of(thin.back(), {});
    scale.last_step = std::max(scale.last_step, one.last_step);
    scale.low = std::min(scale.low, one.low);
    scale.high = std::max(scale.high, one.high);
  }
  if (curves.empty()) scale = {1, 0, 1};
  std::string svg = canvas(scale);
  svg += fmt::format("<text x=\"{}\" y=\"22\">{}</text>\n", kLeft, escaped(title));
  for (size_t i = 0; i < thin.size(); ++i) {
    const char* const colour = kColours[i % std::size(kColours)];
    svg += line(thin[i], scale, colour, 1.5);
    svg += fmt::format("<text x=\"{}\" y=\"{}\" text-anchor=\"end\" fill=\"{}\">{} {:.4f}</text>\n",
                       kWidth - kRight, 22 + 16 * i, colour, escaped(curves[i].first),
                       curves[i].second.back().second);
  }
  return svg + "</svg>\n";
}

}  // namespace fovea::train
