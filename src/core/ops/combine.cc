#include "base/error.h"
#include "ops/ops.h"
#include "ops/statistics.h"
#include "tensor/tape.h"

namespace fovea {
namespace {

void check_places(const Tensor& places, int64_t count) {
  std::vector<bool> seen(static_cast<size_t>(count));
  const Tensor host = places.to(cpu_device());
  for (int64_t i = 0; i < places.size(); ++i) {
    const int32_t place = host.data_as<int32_t>()[i];
    check(place >= 0 && place < count && !seen[static_cast<size_t>(place)],
          "combine: places[{}] is {}; expected 0 to {}, each once", i, place, count - 1);
    seen[static_cast<size_t>(place)] = true;
  }
}

}  // namespace

Tensor combine(const Tensor& z, const Tensor& given, const Tensor& weights) {
  const Tensor places = given.to(z.device());
  check(z.rank() == 2 && places.rank() == 2 && places.dtype() == DType::i32 &&
            places.size() == z.dim(0) && weights.shape() == places.shape(),
        "combine: z is {}, places are {} {}, weights {}; expected [R*k, C], int32 [R, k], [R, k]",
        z.shape(), name_of(places.dtype()), places.shape(), weights.shape());
  check_places(given, z.dim(0));
  const Rows r{places.dim(0), z.dim(1)};
  const int64_t choices = places.dim(1);
  Tensor y = empty({r.count, r.width}, working_type(z), z.device());
  kernels(z).combine(y, z, places, weights, choices, r);
  return record(y, {z, weights}, [=, z = Saved(z)](const Tensor& dy, Gradients& d) {
    // dz[place] = weight * dy,   dweight = dy . z[place]
    kernels(dy).combine_backward(d[z], d[weights], dy, z.elements(), places, weights, choices, r);
  });
}

}  // namespace fovea
