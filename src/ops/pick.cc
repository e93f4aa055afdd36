#include <limits>

#include "base/error.h"
#include "ops/ops.h"
#include "tensor/tape.h"

namespace fovea {
namespace {

// Returns the index in x [R, C] of each element that columns [R, k] selects.
Tensor places_in_rows(const Tensor& columns, int64_t width) {
  Tensor places = empty_like(columns);
  const int64_t k = columns.dim(1);
  const int32_t* column = columns.data_as<int32_t>();
  for (int64_t i = 0; i < columns.size(); ++i) {
    check(column[i] >= 0 && column[i] < width, "pick: column {} at position {}; expected 0 to {}",
          column[i], i, width - 1);
    for (int64_t j = i / k * k; j < i; ++j)
      check(column[j] != column[i],
            "pick: column {} occurs twice in row {}; expected different columns", column[i], i / k);
    places.data_as<int32_t>()[i] = static_cast<int32_t>(i / k * width) + column[i];
  }
  return places;
}

}  // namespace

Tensor pick(const Tensor& x, const Tensor& columns) {
  check(x.rank() == 2 && columns.rank() == 2 && columns.dtype() == DType::i32 &&
            columns.dim(0) == x.dim(0),
        "pick: x is {}, columns are {} {}; expected [R, C] and int32 [R, k]", x.shape(),
        name_of(columns.dtype()), columns.shape());
  check(x.size() <= std::numeric_limits<int32_t>::max(),
        "pick: x is {}; expected fewer than 2^31 elements", x.shape());
  // Each element becomes a row of width 1, so that gather's gradient applies.
  return gather(places_in_rows(columns, x.dim(1)), x.view({x.size(), 1})).view(columns.shape());
}

}  // namespace fovea
