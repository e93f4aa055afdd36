#include "kernels/scan.h"

#include <bit>

namespace fovea {
namespace {

// y[r] = the sum of term(r, i) over i
template <class Sum, class Y, class Term>
void each_row(Y* y, int64_t rows, int64_t width, const Term& term) {
  for (int64_t r = 0; r < rows; ++r) {
    Sum sum = 0;
    for (int64_t i = 0; i < width; ++i) sum += term(r * width + i, i);
    y[r] = static_cast<Y>(sum);
  }
}

void dots(float* y, const float* x, int64_t rows, int64_t width, const float* query) {
  each_row<double>(y, rows, width,
                   [&](int64_t at, int64_t i) { return double{x[at]} * double{query[i]}; });
}

void squared_distances(float* y, const float* x, int64_t rows, int64_t width, const float* query) {
  each_row<double>(y, rows, width, [&](int64_t at, int64_t i) {
    const double difference = double{x[at]} - double{query[i]};
    return difference * difference;
  });
}

void byte_dots(int32_t* y, const uint8_t* x, int64_t rows, int64_t width, const int8_t* query) {
  each_row<int64_t>(y, rows, width,
                    [&](int64_t at, int64_t i) { return (x[at] - 128) * query[i]; });
}

void bit_distances(int32_t* y, const uint8_t* x, int64_t rows, int64_t width,
                   const uint8_t* query) {
  each_row<int64_t>(y, rows, width, [&](int64_t at, int64_t i) {
    return std::popcount(static_cast<unsigned>(x[at] ^ query[i]));
  });
}

}  // namespace

const ScanKernels& reference_scan_kernels() {
  static const ScanKernels kernels = {dots, squared_distances, byte_dots, bit_distances};
  return kernels;
}

}  // namespace fovea
