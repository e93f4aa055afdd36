#include "base/error.h"
#include "ops/ops.h"
#include "ops/working.h"
#include "tensor/tape.h"

namespace fovea {
namespace {

// Calls move(element of the windows, element of the sequence) wherever a window lies inside.
template <class Move>
void each_element(const Shape& shape, int64_t windows, int64_t kernel, int64_t stride,
                  int64_t padding, Move&& move) {
  const int64_t B = shape[0], T = shape[1], C = shape[2];
  for (int64_t b = 0; b < B; ++b)
    for (int64_t w = 0; w < windows; ++w)
      for (int64_t j = 0; j < kernel; ++j) {
        const int64_t t = w * stride + j - padding;
        if (t < 0 || t >= T) continue;
        for (int64_t c = 0; c < C; ++c)
          move(((b * windows + w) * C + c) * kernel + j, (b * T + t) * C + c);
      }
}

}  // namespace

Tensor unfold(const Tensor& x, int64_t kernel, int64_t stride, int64_t padding) {
  check(x.rank() == 3 && kernel > 0 && stride > 0 && padding >= 0 &&
            x.dim(1) + 2 * padding >= kernel,
        "unfold: x {}, kernel {}, stride {}, padding {}; expected [B, T, C] of at least one window",
        x.shape(), kernel, stride, padding);
  const int64_t windows = (x.dim(1) + 2 * padding - kernel) / stride + 1;
  const Shape shape = x.shape();
  const Tensor from = working(x), y = zeros({shape[0], windows, shape[2] * kernel}, from.dtype());
  with_working_type(from.dtype(), [&]<class T>(T) {
    each_element(shape, windows, kernel, stride, padding, [&](int64_t to, int64_t at) {
      y.data_as<T>()[to] = from.data_as<T>()[at];
    });
  });
  return record(y.dtype() == x.dtype() ? y : convert(y, x.dtype()), {x},
                [=, slot = Saved::slot(x)](const Tensor& dy, Gradients& d) {
                  const Tensor up = working(dy), dx = zeros(shape, up.dtype());
                  with_working_type(up.dtype(), [&]<class T>(T) {
                    each_element(shape, windows, kernel, stride, padding,
                                 [&](int64_t to, int64_t at) {
                                   dx.data_as<T>()[at] += up.data_as<T>()[to];
                                 });
                  });
                  deliver(d[slot], dx);
                });
}

Tensor patches(const Tensor& image, int64_t size) {
  check(image.rank() == 4 && size > 0 && image.dim(2) % size == 0 && image.dim(3) % size == 0,
        "patches: image {}, size {}; expected [B, channels, H, W] of whole squares", image.shape(),
        size);
  const int64_t B = image.dim(0), channels = image.dim(1), H = image.dim(2), W = image.dim(3);
  const int64_t across = W / size, count = H / size * across;
  const Tensor y = empty({B, count, channels * size * size});
  float* to = y.data_as<float>();
  for (int64_t b = 0; b < B; ++b)
    for (int64_t n = 0; n < count; ++n)
      for (int64_t c = 0; c < channels; ++c)
        for (int64_t row = 0; row < size; ++row) {
          const int64_t line = (b * channels + c) * H + n / across * size + row;
          to = std::copy_n(image.data_as<float>() + line * W + n % across * size, size, to);
        }
  return y;
}

Tensor concat_tokens(const Tensor& first, const Tensor& second) {
  check(first.rank() == 3 && second.rank() == 3 && first.dim(2) == second.dim(2) &&
            (first.dim(0) == 1 || first.dim(0) == second.dim(0)) &&
            first.dtype() == second.dtype(),
        "concat_tokens: {} and {}; expected [B or 1, N, C] and [B, T, C]", first.shape(),
        second.shape());
  const int64_t B = second.dim(0), shared = first.dim(0) == 1 ? 0 : 1;
  const int64_t head = first.dim(1) * first.dim(2), tail = second.dim(1) * second.dim(2);
  const auto move = [=](Out to, In from, int64_t elements) { kernels_for(from.dtype).convert(to, from, elements); };
  const auto in = [](const Tensor& x, int64_t element) {
    return In{x.data_as<char>() + static_cast<size_t>(element) * size_of(x.dtype()), x.dtype()};
  };
  const auto out = [](Out x, int64_t element) {
    if (x.data != nullptr)
      x.data = static_cast<char*>(x.data) + static_cast<size_t>(element) * size_of(x.dtype);
    return x;
  };
  const Tensor y = empty({B, first.dim(1) + second.dim(1), second.dim(2)}, second.dtype());
  for (int64_t b = 0; b < B; ++b) {
    move(out(y, b * (head + tail)), in(first, b * shared * head), head);
    move(out(y, b * (head + tail) + head), in(second, b * tail), tail);
  }
  return record(y, {first, second},
                [=, a = Saved::slot(first), z = Saved::slot(second)](const Tensor& dy, Gradients& d) {
                  Out da = d[a];
                  const Out dz = d[z];
                  for (int64_t b = 0; b < B; ++b) {
                    if (da.data != nullptr)
                      move(out(da, b * shared * head), in(dy, b * (head + tail)), head);
                    if (shared == 0) da.add = true;  // the same tokens in front of every row
                    if (dz.data != nullptr)
                      move(out(dz, b * tail), in(dy, b * (head + tail) + head), tail);
                  }
                });
}

}  // namespace fovea
