#include "ops/ops.h"
#include "ops/probability.h"
#include "tensor/tape.h"

namespace fovea {

Tensor dropout(const Tensor& x, const Dropout& options) {
  check_probability(options, "dropout");
  if (options.probability == 0) return x;
  check(x.size() % options.units == 0, "dropout: x is {}, of {} units; expected equal parts",
        x.shape(), options.units);
  Tensor y = empty_like(x);
  kernels(x).dropout(y, x, options, x.size());
  return record(y, {x}, [options, x = Saved::slot(x)](const Tensor& dy, Gradients& d) {
    // The same mask is generated again from the seed, so it need not be stored.
    kernels(dy).dropout(d[x], dy, options, dy.size());
  });
}

}  // namespace fovea
