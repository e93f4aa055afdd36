// Sequences and images.

#include <cstring>

#include "base/error.h"
#include "ops/common.h"
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

Tensor concat_shared(const Tensor& shared, const Tensor& own) {
  check(shared.rank() == 4 && own.rank() == 4 && shared.dim(0) == own.dim(0) &&
            shared.dim(1) == own.dim(1) && shared.dim(2) == 1 && shared.dtype() == own.dtype(),
        "concat_shared: {} {} and {} {}; expected [B, T, 1, N] and [B, T, H, D] of one dtype",
        name_of(shared.dtype()), shared.shape(), name_of(own.dtype()), own.shape());
  const int64_t B = own.dim(0), T = own.dim(1), H = own.dim(2), N = shared.dim(3), D = own.dim(3);
  const ColumnCopy first{B * T, N, N, 0, N + D, 0, H};
  const ColumnCopy second{B * T * H, D, D, 0, N + D, N, 1};
  Tensor y = empty({B, T, H, N + D}, own.dtype(), own.device());
  kernels(y).copy_columns(y, shared, first);
  kernels(y).copy_columns(y, own, second);
  return record(
      y, {shared, own},
      [=, shared = Saved::slot(shared), own = Saved::slot(own)](const Tensor& dy, Gradients& d) {
        if (d.wants(shared)) kernels(dy).copy_columns_backward(d[shared], dy, first);
        if (d.wants(own)) kernels(dy).copy_columns_backward(d[own], dy, second);
      });
}

Tensor unfold(const Tensor& x, int64_t kernel, int64_t stride, int64_t padding) {
  // A limit above any practical value; sums of values below it do not overflow.
  constexpr int64_t kMost = int64_t{1} << 40;
  check(x.rank() == 3 && kernel > 0 && stride > 0 && padding >= 0 && kernel < kMost &&
            stride < kMost && padding < kMost && x.dim(1) + 2 * padding >= kernel,
        "unfold: x is {}, kernel {}, stride {}, padding {}; expected [B, T, C] and a kernel of at "
        "most T + 2 * padding",
        x.shape(), kernel, stride, padding);
  Windows w{x.dim(0), x.dim(1), x.dim(2), kernel, stride, padding, 0};
  w.count = (w.tokens + 2 * padding - kernel) / stride + 1;
  Tensor y = empty({w.batch, w.count, w.width * kernel}, x.dtype(), x.device());
  kernels(x).unfold(y, x, w);
  return record(y, {x}, [w, x = Saved::slot(x)](const Tensor& dy, Gradients& d) {
    kernels(dy).unfold_backward(d[x], dy, w);  // dx[t] = the sum over the windows that contain t
  });
}

Tensor patches(const Tensor& image, int64_t size) {
  check(image.rank() == 4 && size > 0 && image.dim(2) % size == 0 && image.dim(3) % size == 0,
        "patches: image is {}, squares of {}; expected [B, channels, H, W] with H and W "
        "multiples of their side",
        image.shape(), size);
  const int64_t channels = image.dim(1), height = image.dim(2), width = image.dim(3);
  const int64_t down = height / size, across = width / size;
  Tensor y = empty({image.dim(0), down * across, channels * size * size}, image.dtype());
  // Lines of a square are ordered by (batch, down, across, channel, line).
  for (int64_t i = 0; i < y.size() / size; ++i) {
    const int64_t line = i % size, channel = i / size % channels;
    const int64_t square = i / size / channels, column = square % across;
    const int64_t row = square / across % down, batch = square / across / down;
    const int64_t from = ((batch * channels + channel) * height + row * size + line) * width;
    copy_elements(y, i * size, image, from + column * size, size);
  }
  return y;
}

}  // namespace fovea
