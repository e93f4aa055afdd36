#include "nn/input.h"

#include "base/error.h"

namespace fovea {
namespace {

constexpr int64_t kKernel = 3;  // frames that a convolution covers

// [B, N, T] -> [B, T, N], on the host; x is an input, so it has no gradient
Tensor swap_axes(const Tensor& x) {
  const int64_t B = x.dim(0), N = x.dim(1), T = x.dim(2);
  Tensor y = empty({B, T, N});
  for (int64_t b = 0; b < B; ++b)
    for (int64_t t = 0; t < T; ++t)
      for (int64_t n = 0; n < N; ++n)
        y.data_as<float>()[(b * T + t) * N + n] = x.data_as<float>()[(b * N + n) * T + t];
  return y;
}

Tensor convolve(const Tensor& x, const Linear& layer, int64_t stride) {
  return activation(layer(unfold(x, kKernel, stride, 1)), Activation::gelu);
}

}  // namespace

Input::Input(const InputSpec& s, int64_t width) : spec(s) {
  if (s.kind == InputKind::image) {
    patch = Linear(s.channels * s.patch * s.patch, width, true);
    class_token = {{1, width}, Role::position_embedding, {}};
  } else if (s.kind == InputKind::audio) {
    narrow = Linear(s.bins * kKernel, width, true);
    wide = Linear(width * kKernel, width, true);
  }
}

int64_t Input::length() const {
  const int64_t side = spec.size / spec.patch;
  return spec.kind == InputKind::image ? side * side + 1 : spec.frames;
}

Tensor Input::operator()(const Tensor& x, DType compute) const {
  const Shape expected = spec.kind == InputKind::image
                             ? Shape{x.dim(0), spec.channels, spec.size, spec.size}
                             : Shape{x.dim(0), spec.bins, 2 * spec.frames};
  check(x.shape() == expected, "input: shape {}; expected {}", describe(x.shape()),
        describe(expected));
  const DType stream = compute == DType::f64 ? DType::f64 : DType::f32;
  if (spec.kind == InputKind::image) {
    const Tensor squares =
        patch(cast(patches(x, spec.patch).to(patch.weight.device()), compute));  // [B, T - 1, C]
    return concat_tokens(class_token.value.view({1, 1, class_token.value.dim(1)}),
                         cast(squares, stream));
  }
  const Tensor frames = cast(swap_axes(x).to(narrow.weight.device()), compute);  // [B, 2 T, bins]
  return cast(convolve(convolve(frames, narrow, 1), wide, 2), stream);
}

}  // namespace fovea
