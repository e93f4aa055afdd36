#include <algorithm>
#include <cmath>
#include <vector>

#include "base/half.h"
#include "kernels/layout/blocks.h"
#include "kernels/reference/number.h"
#include "kernels/reference/reference.h"

namespace fovea::reference {

void gemm(Out c, In a, In b, In bias, const GemmShape& shape) {
  const auto [m, n, k, transpose_a, transpose_b, units, second, kept] = shape;
  for (int64_t i = 0; i < m; ++i) {
    for (int64_t j = 0; j < n; ++j) {
      double sum = 0;
      for (int64_t l = 0; l < k; ++l) {
        sum += get(a, transpose_a ? l * m + i : i * k + l) *
               get(b, transpose_b ? j * k + l : l * n + j);
      }
      for (int64_t l = 0; l < second.k; ++l)
        sum += get(second.a, i * second.k + l) *
               get(second.b, transpose_b ? j * second.k + l : l * n + j);
      put(c, i * n + j, sum + (bias.data == nullptr ? 0 : get(bias, j)));
    }
  }
}

namespace {

// Returns a row of x as the product reads it: rounded to integers times scales if the weights are
// integers, rounded to bf16 for bf16 weights, else unchanged. The scales are floats, as in the fast
// kernels: in a different precision, values near a rounding boundary would round differently.
std::vector<double> rounded_row(In x, int64_t row, const PackedMatrix& w) {
  std::vector<double> values(static_cast<size_t>(w.width));
  for (int64_t k = 0; k < w.width; ++k) values[static_cast<size_t>(k)] = get(x, row * w.width + k);
  if (w.format == WeightFormat::bf16)
    for (double& value : values) value = widen(narrow(static_cast<float>(value)));
  if (!has_integers(w.format)) return values;
  for (int64_t begin = 0; begin < w.width; begin += w.group) {
    const int64_t end = std::min(w.width, begin + w.group);
    float largest = 0;
    for (int64_t k = begin; k < end; ++k)
      largest = std::max(largest, std::abs(static_cast<float>(values[static_cast<size_t>(k)])));
    const float scale = largest * (1.0f / 127),
                inverse = largest >= kLeastActivation ? 127 / largest : 0;
    for (int64_t k = begin; k < end; ++k) {
      double& value = values[static_cast<size_t>(k)];
      value = std::nearbyint(static_cast<float>(value) * inverse) * double{scale};
    }
  }
  return values;
}

void multiply(const PackedProduct& product, In x, int64_t rows) {
  const PackedMatrix& w = product.weight;
  std::vector<std::vector<double>> inputs;
  for (int64_t r = 0; r < rows; ++r) inputs.push_back(rounded_row(x, r, w));
  std::vector<float> weights(static_cast<size_t>(w.width));
  for (int64_t n = 0; n < w.outputs; ++n) {
    unpack_row(w, n, weights.data());
    for (int64_t r = 0; r < rows; ++r) {
      double sum = 0;
      for (size_t k = 0; k < weights.size(); ++k)
        sum += inputs[static_cast<size_t>(r)][k] * double{weights[k]};
      if (product.bias.data != nullptr) sum += get(product.bias, n);
      if (product.activation)
        activation({&sum, DType::f64}, {&sum, DType::f64}, *product.activation, 1);
      const int64_t at = r * w.outputs + n;
      if (product.residual.data != nullptr) sum += get(product.residual, at);
      put(product.y, at, sum);
    }
  }
}

}  // namespace

void packed_linear(std::span<const PackedProduct> products, In x, int64_t rows) {
  for (const PackedProduct& product : products) multiply(product, x, rows);
}

void packed_gemm(Out c, In a, const PackedMatrix& w, In bias, const GemmShape& shape) {
  check_packed_gemm(w, shape);
  std::vector<float> matrix(static_cast<size_t>(w.outputs * w.width));
  unpack_rows(matrix.data(), w, nullptr, w.outputs);
  if (a.dtype == DType::bf16)
    for (float& weight : matrix) weight = widen(narrow(weight));
  gemm(c, a, matrix.data(), bias, shape);
}

}  // namespace fovea::reference
