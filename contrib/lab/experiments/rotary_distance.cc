// The products of rotated queries and keys at equal distances and different positions.

#include <cmath>

#include "base/math.h"
#include "fovea/core/ops.h"
#include "lab/conclude.h"
#include "lab/experiments.h"

namespace fovea::lab {
namespace {

constexpr int64_t kRotatedWidth = 64;
constexpr double kTheta = 10000;

Tensor rotated_to(const Tensor& x, double position) {
  const Tensor cosines = empty({1, kRotatedWidth / 2}), sines = empty({1, kRotatedWidth / 2});
  for (int64_t i = 0; i < kRotatedWidth / 2; ++i) {
    const double frequency =
        math::pow(kTheta, -2 * static_cast<double>(i) / static_cast<double>(kRotatedWidth));
    const auto [sine, cosine] = math::sine_and_cosine(position * frequency);
    cosines.data_as<float>()[i] = static_cast<float>(cosine);
    sines.data_as<float>()[i] = static_cast<float>(sine);
  }
  return rotate(x, cosines, sines, Pairing::halves);
}

double product(const Tensor& a, const Tensor& b) {
  double sum = 0;
  for (int64_t i = 0; i < kRotatedWidth; ++i)
    sum += double{a.data_as<float>()[i]} * double{b.data_as<float>()[i]};
  return sum;
}

Readings deviation(const Trial& t) {
  const Tensor q = normal({1, 1, 1, kRotatedWidth}, 1, t.seed, 0),
               k = normal({1, 1, 1, kRotatedWidth}, 1, t.seed, 1);
  const double size = std::sqrt(product(q, q) * product(k, k));
  const auto at = [&](double position) {
    return product(rotated_to(q, position + t.x), rotated_to(k, position)) / size;
  };
  double largest = 0;
  for (const double position : {1.0, 10.0, 100.0, 1000.0, 10000.0})
    largest = std::max(largest, std::abs(at(position) - at(0)));
  return {{t.arm, t.x, largest}};
}

std::vector<Conclusion> decide_rotary(const Table& table) {
  constexpr double kRounding = 1e-6;
  std::vector<Case> cases;
  for (const double x : table.x_values("rotary"))
    cases.push_back({"the distance is " + number_text(x), below(table.at("rotary", x), kRounding)});
  return {conclude("CLM-12: the product of rotated vectors depends on their distance only", cases,
                   course(table, "rotary"))};
}

}  // namespace

Experiment rotary_distance() {
  return {
      .summary = {.name = "rotary-distance",
                  .claims = {"CLM-12: the product of rotated vectors depends on their distance "
                             "only"},
                  .metric = "largest change of q k / (|q| |k|) over positions up to 10,000",
                  .axis = "distance in tokens",
                  .rule = "holds at a distance if the interval lies below 1e-6, the rounding of "
                          "fp32"},
      .logarithmic = true,
      .arms = {"rotary"},
      .grid = {{1, 10, 100, 1000}, {1, 10, 100, 1000, 10000}},
      .measure = deviation,
      .conclude = decide_rotary};
}

}  // namespace fovea::lab
