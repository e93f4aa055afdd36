#include "vision/image_size.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"

namespace fovea::infer {
namespace {

// Keys 1981, eq. 3.
double cubic(double x, double a) {
  x = std::abs(x);
  if (x < 1) return ((a + 2) * x - (a + 3)) * x * x + 1;
  return x < 2 ? (((x - 5) * x + 8) * x - 4) * a : 0;
}

// The rows of the old table that make up a row of the new one; rows beyond the ends are those at
// the ends.
struct Tap {
  int64_t row;
  double weight;
};

std::vector<Tap> taps_of(int64_t to, int64_t from_size, int64_t to_size, bool antialiased) {
  const double ratio = static_cast<double>(from_size) / static_cast<double>(to_size);
  const double reduction = antialiased ? std::max(ratio, 1.0) : 1.0;
  const double a = antialiased ? -0.5 : -0.75;
  const double centre = (static_cast<double>(to) + 0.5) * ratio - 0.5;
  const auto first = static_cast<int64_t>(std::floor(centre - 2 * reduction)) + 1;
  const auto last = static_cast<int64_t>(std::ceil(centre + 2 * reduction)) - 1;
  std::vector<Tap> taps;
  double sum = 0;
  for (int64_t row = first; row <= last; ++row) {
    const bool outside = row < 0 || row >= from_size;
    if (antialiased && outside) continue;
    const double weight = cubic((static_cast<double>(row) - centre) / reduction, a);
    taps.push_back({std::clamp<int64_t>(row, 0, from_size - 1), weight});
    sum += weight;
  }
  for (Tap& tap : taps) tap.weight /= sum;
  return taps;
}

// table [first + from * from, C] -> [first + to * to, C]; the first rows are those of class tokens.
Tensor resized_table(const Tensor& table, int64_t first, int64_t from, int64_t to,
                     bool antialiased) {
  const int64_t C = table.dim(1);
  Tensor y = zeros({first + to * to, C});
  const float* old = table.data_as<float>();
  std::copy_n(old, first * C, y.data_as<float>());
  std::vector<double> sum(static_cast<size_t>(C));
  for (int64_t r = 0; r < to; ++r) {
    const std::vector<Tap> rows = taps_of(r, from, to, antialiased);
    for (int64_t c = 0; c < to; ++c) {
      std::fill(sum.begin(), sum.end(), 0.0);
      for (const Tap& column : taps_of(c, from, to, antialiased))
        for (const Tap& row : rows) {
          const float* x = old + (first + row.row * from + column.row) * C;
          for (double& element : sum) element += row.weight * column.weight * double{*x++};
        }
      float* out = y.data_as<float>() + (first + r * to + c) * C;
      for (const double element : sum) *out++ = static_cast<float>(element);
    }
  }
  return y;
}

}  // namespace

void set_image_size(model::Transformer& model, int64_t size) {
  model::InputSpec& input = model.spec.input;
  if (size == input.size) return;
  check(size % input.patch == 0,
        "the processor's images have {} pixels a side; expected a multiple of {}, the patch", size,
        input.patch);
  check(model.spec.encoder->position.kind == model::PositionKind::learned &&
            model.spec.encoder->position.offset == 0,
        "the processor's images have {} pixels a side; expected {}, the model's", size, input.size);
  model::Positions& positions = model.encoder.positions;
  const Tensor old = convert(positions.table.value, DType::f32);
  positions.table.value = resized_table(old, input.class_tokens, input.size / input.patch,
                                        size / input.patch, input.registers > 0);
  positions.table.shape = positions.table.value.shape();
  input.size = size;
  model.input.spec.size = size;
  positions.context = model.input.positions();
  model.spec.context = positions.context;
}

}  // namespace fovea::infer
