#include "inspect/frozen_norm.h"

#include <cmath>
#include <numeric>

#include "base/math.h"

namespace fovea::study {
namespace {

double mean_of(const std::vector<double>& x) {
  return std::accumulate(x.begin(), x.end(), 0.0) / static_cast<double>(x.size());
}

// Returns the number by which LayerNorm or RMSNorm multiplies the row (x - mean).
double scale_of(const model::NormSpec& spec, const std::vector<double>& x) {
  const double mean = spec.kind == model::NormKind::layer ? mean_of(x) : 0;
  double squares = 0;
  for (const double each : x) squares += (each - mean) * (each - mean);
  const double variance = squares / static_cast<double>(x.size());
  return spec.epsilon_outside ? 1 / (std::sqrt(variance) + double{spec.epsilon})
                              : 1 / std::sqrt(variance + double{spec.epsilon});
}

}  // namespace

FrozenNorm::FrozenNorm(const model::Norm& norm, const std::vector<float>& row)
    : factor(row.size(), 1.0) {
  if (!norm.present()) return;
  const std::vector<double> x(row.begin(), row.end());
  const std::vector<float> gain =
      norm.weight.present() ? to_floats(norm.weight.value) : std::vector<float>(row.size(), 1.0f);
  if (norm.bias.present()) {
    const std::vector<float> added = to_floats(norm.bias.value);
    bias.assign(added.begin(), added.end());
  }
  centred = norm.spec.kind == model::NormKind::layer;
  const bool tanh = norm.spec.kind == model::NormKind::dyt;
  const double scale = tanh ? double{to_floats(norm.alpha.value)[0]} : scale_of(norm.spec, x);
  for (size_t c = 0; c < x.size(); ++c) {
    // The limit of tanh(alpha x) / x at 0 is alpha.
    const double shrunk = tanh && x[c] != 0 ? math::tanh(scale * x[c]) / x[c] : scale;
    factor[c] = shrunk * (double{gain[c]} + (norm.spec.unit_offset ? 1 : 0));
  }
}

std::vector<double> FrozenNorm::of(std::vector<double> p) const {
  const double mean = centred ? mean_of(p) : 0;
  for (size_t c = 0; c < p.size(); ++c) p[c] = factor[c] * (p[c] - mean);
  return p;
}

std::vector<double> FrozenNorm::backward(std::vector<double> g) const {
  for (size_t c = 0; c < g.size(); ++c) g[c] *= factor[c];
  if (!centred) return g;
  const double mean = mean_of(g);
  for (double& each : g) each -= mean;
  return g;
}

}  // namespace fovea::study
