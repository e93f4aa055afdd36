#include <algorithm>
#include <cmath>

#include "base/fields.h"
#include "base/float_mode.h"
#include "base/math.h"
#include "fovea/train/plan.h"
#include "plan/speed.h"

namespace fovea::train {
namespace {

constexpr double kTokensPerParameter = 20;  // Hoffmann et al. 2022, table 3
constexpr double kFlopsPerParameterAndToken = 6;

// Kaplan et al. 2020, table 5 of appendix A.
constexpr double kSizeExponent = 0.076, kSize = 8.8e13;
constexpr double kDataExponent = 0.095, kData = 5.4e13;

// Hoffmann et al. 2022, 3.3: L = E + A / N^alpha + B / D^beta.
constexpr double kFloor = 1.69, kSizeFactor = 406.4, kDataFactor = 410.7;
constexpr double kAlpha = 0.34, kBeta = 0.28;

constexpr double kWidthPerLayer = 64;  // as in most models of the last years

}  // namespace

double rule_flops(double parameters, double tokens) {
  return kFlopsPerParameterAndToken * parameters * tokens;
}

double kaplan_loss_of_size(double parameters) {
  return math::pow(kSize / parameters, kSizeExponent);
}
double kaplan_loss_of_data(double tokens) { return math::pow(kData / tokens, kDataExponent); }

double kaplan_loss(double parameters, double tokens) {
  return math::pow(math::pow(kSize / parameters, kSizeExponent / kDataExponent) + kData / tokens,
                   kDataExponent);
}

double chinchilla_loss(double parameters, double tokens) {
  return kFloor + kSizeFactor / math::pow(parameters, kAlpha) +
         kDataFactor / math::pow(tokens, kBeta);
}

double optimal_tokens(double parameters) { return kTokensPerParameter * parameters; }

double optimal_parameters(double flops) {
  return std::sqrt(flops / (kFlopsPerParameterAndToken * kTokensPerParameter));
}

BudgetPlan plan_budget(double flops) {
  const FloatMode mode;
  check_field(flops > 0 && std::isfinite(flops), "budget", "{}; expected a number above 0", flops);
  BudgetPlan b{.flops = flops, .parameters = optimal_parameters(flops)};
  b.tokens = optimal_tokens(b.parameters);
  b.loss = chinchilla_loss(b.parameters, b.tokens);
  const double g = math::pow(kAlpha * kSizeFactor / (kBeta * kDataFactor), 1 / (kAlpha + kBeta));
  b.fitted_parameters = g * math::pow(flops / kFlopsPerParameterAndToken, kBeta / (kAlpha + kBeta));
  b.fitted_tokens = flops / kFlopsPerParameterAndToken / b.fitted_parameters;
  b.fitted_loss = chinchilla_loss(b.fitted_parameters, b.fitted_tokens);
  // 12 layers * (kWidthPerLayer * layers)^2 = parameters
  const double layers = math::pow(b.parameters / (12 * kWidthPerLayer * kWidthPerLayer), 1.0 / 3);
  b.layers = std::max<int64_t>(1, std::llround(layers));
  const double width = std::sqrt(b.parameters / (12 * static_cast<double>(b.layers)));
  b.width = std::max<int64_t>(1, std::llround(width / 8)) * 8;
  return b;
}

double flops_of_hours(double hours, const PlanOptions& options) {
  const FloatMode mode;
  check_fields(options);
  check_field(hours > 0 && std::isfinite(hours), "hours", "{}; expected a number above 0", hours);
  constexpr double kHourSeconds = 3600, kMeasured = 0.2;
  const double speed = options.speed > 0 ? options.speed : measured_flops(DType::f32, kMeasured);
  return hours * kHourSeconds * speed * options.utilisation * static_cast<double>(options.devices);
}

}  // namespace fovea::train
