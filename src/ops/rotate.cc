#include "base/error.h"
#include "base/threads.h"
#include "ops/ops.h"
#include "ops/working.h"
#include "tensor/tape.h"

namespace fovea {
namespace {

// y = x with the first 2 * pairs elements of each head turned; `direction` -1 turns back.
template <class T>
void turn(T* y, const T* x, const float* cosines, const float* sines, const Shape& shape,
          int64_t table_rows, int64_t pairs, Pairing pairing, T direction) {
  const int64_t H = shape[2], D = shape[3], tokens = shape[0] * shape[1];
  const int64_t stride = pairing == Pairing::halves ? 1 : 2;
  const int64_t partner = pairing == Pairing::halves ? pairs : 1;
  parallel_for(tokens, 1 + 8192 / (H * D + 1), [&](int64_t first, int64_t last) {
    for (int64_t token = first; token < last; ++token) {
      const float* c = cosines + token % table_rows * pairs;
      const float* s = sines + token % table_rows * pairs;
      for (int64_t h = 0; h < H; ++h) {
        const T* from = x + (token * H + h) * D;
        T* to = y + (token * H + h) * D;
        for (int64_t i = 0; i < pairs; ++i) {
          const T a = from[i * stride], b = from[i * stride + partner];
          const T sine = direction * static_cast<T>(s[i]), cosine = static_cast<T>(c[i]);
          to[i * stride] = a * cosine - b * sine;
          to[i * stride + partner] = b * cosine + a * sine;
        }
        std::copy(from + 2 * pairs, from + D, to + 2 * pairs);
      }
    }
  });
}

Tensor turned(const Tensor& x, const Tensor& cosines, const Tensor& sines, Pairing pairing,
              int direction) {
  const Tensor input = working(x);
  const Tensor y = empty(x.shape(), input.dtype());
  with_working_type(input.dtype(), [&]<class T>(T) {
    turn(y.data_as<T>(), input.data_as<T>(), cosines.data_as<float>(), sines.data_as<float>(),
         x.shape(), cosines.dim(0), cosines.dim(1), pairing, static_cast<T>(direction));
  });
  return y.dtype() == x.dtype() ? y : convert(y, x.dtype());
}

}  // namespace

Tensor rotate(const Tensor& x, const Tensor& cosines, const Tensor& sines, Pairing pairing) {
  check(x.rank() == 4, "rotate: x is {}; expected [B, T, H, D]", x.shape());
  const int64_t rows = cosines.dim(0);
  check(cosines.rank() == 2 && cosines.shape() == sines.shape() &&
            2 * cosines.dim(1) <= x.dim(3) && (rows == x.dim(1) || rows == x.dim(0) * x.dim(1)),
        "rotate: cos {} and sin {} of x {}; expected [T or B T, at most D/2]", cosines.shape(),
        sines.shape(), x.shape());
  return record(turned(x, cosines, sines, pairing, 1), {x},
                [=, x = Saved::slot(x)](const Tensor& dy, Gradients& d) {
                  deliver(d[x], turned(dy, cosines, sines, pairing, -1));  // the turn back
                });
}

}  // namespace fovea
