#include <algorithm>

#include "base/error.h"
#include "base/threads.h"
#include "ops/ops.h"
#include "ops/working.h"
#include "tensor/tape.h"

namespace fovea {

Tensor combine(const Tensor& z, const Tensor& places, const Tensor& weights) {
  check(z.rank() == 2 && places.shape() == weights.shape() && places.rank() == 2,
        "combine: z {}, places {}, weights {}; expected [N, C], [R, k], [R, k]", z.shape(),
        places.shape(), weights.shape());
  const int64_t R = places.dim(0), k = places.dim(1), C = z.dim(1);
  const Tensor from = working(z), y = zeros({R, C}, from.dtype());
  const Tensor w = convert(weights, from.dtype());
  const int32_t* place = places.data_as<int32_t>();
  with_working_type(from.dtype(), [&]<class T>(T) {
    parallel_for(R, 1 + 8192 / (k * C), [&](int64_t first, int64_t last) {
      for (int64_t i = first * k; i < last * k; ++i) {
        const T* row = from.data_as<T>() + place[i] * C;
        const T weight = w.data_as<T>()[i];
        T* sum = y.data_as<T>() + i / k * C;
        for (int64_t c = 0; c < C; ++c) sum[c] += weight * row[c];
      }
    });
  });
  return record(y, {z, weights}, [=](const Tensor& dy, Gradients& d) {
    // dz[places[r, j]] += w[r, j] dy[r],  dw[r, j] = dy[r] . z[places[r, j]]
    const Tensor up = convert(dy, from.dtype()), rows = working(z);
    const Tensor dz = zeros(z.shape(), from.dtype()), dw = zeros(w.shape(), from.dtype());
    with_working_type(from.dtype(), [&]<class T>(T) {
      for (int64_t i = 0; i < R * k; ++i) {
        const T* dyr = up.data_as<T>() + i / k * C;
        const T* zr = rows.data_as<T>() + places.data_as<int32_t>()[i] * C;
        T* dzr = dz.data_as<T>() + places.data_as<int32_t>()[i] * C;
        T dot = 0;
        for (int64_t c = 0; c < C; ++c) {
          dzr[c] += w.data_as<T>()[i] * dyr[c];
          dot += dyr[c] * zr[c];
        }
        dw.data_as<T>()[i] = dot;
      }
    });
    if (d.wants(z)) deliver(d[z], dz);
    if (d.wants(weights)) deliver(d[weights], dw);
  });
}

}  // namespace fovea
