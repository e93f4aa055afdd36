#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "lab/scale.h"

namespace fovea::lab {

// E + A / N^alpha + B / D^beta.
struct LawConstants {
  double floor = 0, size_factor = 0, size_exponent = 0, data_factor = 0, data_exponent = 0;
  double loss(double parameters, double tokens) const;
  // The number of parameters of the least loss where 6 N D = flops (Hoffmann et al. 2022, eq. 4).
  double best_size(double flops) const;
};

struct LawPoint {
  double parameters, tokens, loss;
};

// Returns the law of least squares with E, A and B of at least 0 and exponents from 0.05 to 2: for
// given exponents, the others follow from linear equations.
LawConstants fit_law(const std::vector<LawPoint>& points);

// Returns the laws of `count` resamples of the points, with replacement.
std::vector<LawConstants> resampled_laws(const std::vector<LawPoint>& points, int64_t count,
                                         uint64_t seed);

// Returns value(law) and percentiles 2.5 and 97.5 of value() over the resampled laws.
FittedNumber fitted(const LawConstants& law, const std::vector<LawConstants>& resampled,
                    const std::function<double(const LawConstants&)>& value);

}  // namespace fovea::lab
