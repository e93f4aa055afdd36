#include "nn/input.h"

#include "base/error.h"
#include "nn/packed_linear.h"

namespace fovea::model {
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

// x [B, T, C] -> [B, 1 + T, C], or x if there is no such token
Tensor with_first(const Parameter& token, const Tensor& x) {
  return token.present() ? concat_tokens(token.value.view({1, 1, x.dim(2)}), x) : x;
}

Tensor convolve(const Tensor& x, const Linear& layer, int64_t stride) {
  return activated(layer, unfold(x, kKernel, stride, 1), Activation::gelu, {});
}

}  // namespace

Input::Input(const InputSpec& s, int64_t width) : spec(s) {
  if (s.kind == InputKind::image) {
    patch = Linear(s.channels * s.patch * s.patch, width, s.bias);
    const auto tokens = [&](int64_t count) {
      return Parameter{count > 0 ? Shape{count, width} : Shape{}, Role::position_embedding, {}};
    };
    class_token = tokens(s.class_tokens > 0 ? 1 : 0);
    distillation_token = tokens(s.class_tokens > 1 ? 1 : 0);
    registers = tokens(s.registers);
  } else if (s.kind == InputKind::audio) {
    narrow = Linear(s.bins * kKernel, width, true);
    wide = Linear(width * kKernel, width, true);
  }
}

int64_t Input::positions() const {
  const int64_t side = spec.size / spec.patch;
  return spec.kind == InputKind::image ? side * side + spec.class_tokens : spec.frames;
}

Tensor Input::operator()(const Tensor& x, DType compute) const {
  const Shape expected = spec.kind == InputKind::image
                             ? Shape{x.dim(0), spec.channels, spec.size, spec.size}
                             : Shape{x.dim(0), spec.bins, 2 * spec.frames};
  check(x.shape() == expected, "input: shape {}; expected {}", fovea::describe(x.shape()),
        fovea::describe(expected));
  const DType stream = compute == DType::f64 ? DType::f64 : DType::f32;
  if (spec.kind == InputKind::image) {
    const Tensor squares =
        cast(patch(cast(patches(x, spec.patch).to(patch.weight.device()), compute)), stream);
    return with_first(class_token, with_first(distillation_token, squares));  // [B, T, C]
  }
  const Tensor frames = cast(swap_axes(x).to(narrow.weight.device()), compute);  // [B, 2 T, bins]
  return cast(convolve(convolve(frames, narrow, 1), wide, 2), stream);
}

Tensor Input::with_registers(const Tensor& x) const {
  if (!registers.present()) return x;
  const int64_t B = x.dim(0), T = x.dim(1), C = x.dim(2), R = spec.registers;
  const Tensor all = concat_tokens(registers.value.view({1, R, C}), x);  // [B, R + T, C]
  const Tensor indices = empty({B, R + T}, DType::i32);
  for (int64_t b = 0; b < B; ++b)
    for (int64_t t = 0; t < R + T; ++t) {
      const int64_t from = t < spec.class_tokens       ? R + t
                           : t < spec.class_tokens + R ? t - spec.class_tokens
                                                       : t;
      indices.data_as<int32_t>()[b * (R + T) + t] = static_cast<int32_t>(b * (R + T) + from);
    }
  return gather(indices.to(x.device()), all.view({B * (R + T), C}));  // [B, T + R, C]
}

}  // namespace fovea::model
