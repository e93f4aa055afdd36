#include "base/error.h"
#include "ops/offset.h"
#include "ops/ops.h"
#include "ops/units.h"
#include "tensor/tape.h"

namespace fovea {
namespace {

// Returns elements [begin, begin + count) of each batch row.
Tensor part(const Tensor& x, int64_t batch, int64_t begin, int64_t count) {
  Tensor y = empty({batch, count}, x.dtype(), x.device());
  const int64_t total = x.size() / std::max<int64_t>(1, batch);
  for (int64_t b = 0; b < batch; ++b)
    kernels(x).convert(at(Out(y), b * count), at(In(x), b * total + begin), count);
  return y;
}

}  // namespace

Tensor concat_tokens(const Tensor& first, const Tensor& second) {
  check(first.rank() == 3 && second.rank() == 3 && first.dim(2) == second.dim(2) &&
            (first.dim(0) == 1 || first.dim(0) == second.dim(0)),
        "concat_tokens: {} and {}; expected [B or 1, N, C] and [B, T, C]", first.shape(),
        second.shape());
  const int64_t batch = second.dim(0), width = second.dim(2);
  const int64_t before = first.dim(1) * width, after = second.dim(1) * width;
  const int64_t total = before + after;
  const bool shared = first.dim(0) == 1;
  Tensor y = empty({batch, first.dim(1) + second.dim(1), width}, second.dtype(), second.device());
  const Kernels& k = kernels(y);
  for (int64_t b = 0; b < batch; ++b) {
    k.convert(at(Out(y), b * total), at(In(first), shared ? 0 : b * before), before);
    k.convert(at(Out(y), b * total + before), at(In(second), b * after), after);
  }
  return record(y, {first, second},
                [=, first = Saved::slot(first), second = Saved::slot(second), units = row_units()](
                    const Tensor& dy, Gradients& d) {
                  const Tensor dfirst = part(dy, batch, 0, before);
                  const Tensor dsecond = part(dy, batch, before, after);
                  if (d.wants(first) && shared)  // the sum of dfirst over the batch rows
                    kernels(dy).sum_rows(d[first], dfirst, {batch, before, units.of(batch)});
                  else
                    d.pass(first, dfirst);
                  d.pass(second, dsecond);
                });
}

}  // namespace fovea
