#include "fovea/core/tensor.h"

#include "base/error.h"

namespace fovea {

int64_t elements(const Shape& shape) {
  constexpr int64_t kMost = int64_t{1} << 59;  // so that bytes, rounded up, fit int64 as well
  int64_t product = 1;
  for (const int64_t extent : shape) {
    check(extent >= 0 && !__builtin_mul_overflow(product, extent, &product) && product <= kMost,
          "shape [{}]: not a possible size; expected axes of at least 0, and at most 2^59 elements",
          fmt::join(shape, ", "));
  }
  return product;
}

std::string describe(const Shape& shape) { return fmt::format("[{}]", fmt::join(shape, ", ")); }

void Shape::refuse_another(int64_t extent) const {
  fail(ErrorKind::InvalidArgument, "shape {}: one more axis ({}); expected at most {} axes",
       describe(*this), extent, kMostAxes);
}

}  // namespace fovea
