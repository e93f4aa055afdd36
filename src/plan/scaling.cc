#include <cmath>

#include "base/math.h"
#include "fovea/plan.h"

namespace fovea {
namespace {

constexpr double kTokensPerParameter = 20;  // Hoffmann et al. 2022, table 3
constexpr double kFlopsPerParameterAndToken = 6;

// Kaplan et al. 2020, table 5 of appendix A.
constexpr double kSizeExponent = 0.076, kSize = 8.8e13;
constexpr double kDataExponent = 0.095, kData = 5.4e13;

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
  return 1.69 + 406.4 / math::pow(parameters, 0.34) + 410.7 / math::pow(tokens, 0.28);
}

double optimal_tokens(double parameters) { return kTokensPerParameter * parameters; }

double optimal_parameters(double flops) {
  return std::sqrt(flops / (kFlopsPerParameterAndToken * kTokensPerParameter));
}

}  // namespace fovea
