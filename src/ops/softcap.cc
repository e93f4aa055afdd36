#include <cmath>

#include "base/threads.h"
#include "ops/ops.h"
#include "ops/working.h"
#include "tensor/tape.h"

namespace fovea {
namespace {

constexpr int64_t kGrain = 4096;  // a tanh takes some nanoseconds

}  // namespace

Tensor softcap(const Tensor& x, float cap) {
  const Tensor input = working(x), bounded = empty(x.shape(), input.dtype());
  with_working_type(input.dtype(), [&]<class T>(T) {
    parallel_for(x.size(), kGrain, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i)
        bounded.data_as<T>()[i] = cap * std::tanh(input.data_as<T>()[i] / cap);
    });
  });
  const Tensor y = bounded.dtype() == x.dtype() ? bounded : convert(bounded, x.dtype());
  return record(y, {x}, [bounded, cap, x = Saved::slot(x)](const Tensor& dy, Gradients& d) {
    // dx = dy * (1 - tanh^2), tanh = y / cap
    const Tensor upstream = working(dy), dx = empty(dy.shape(), upstream.dtype());
    with_working_type(upstream.dtype(), [&]<class T>(T) {
      parallel_for(dx.size(), kGrain, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) {
          const T share = bounded.data_as<T>()[i] / cap;
          dx.data_as<T>()[i] = upstream.data_as<T>()[i] * (1 - share * share);
        }
      });
    });
    deliver(d[x], dx);
  });
}

}  // namespace fovea
