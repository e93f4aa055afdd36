// Convolutions of each column along the tokens: vectors of columns.

#include <vector>

#include "kernels/cpu/cpu.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/causal_conv.cc"
#include <hwy/foreach_target.h>

#include "base/threads.h"
#include "kernels/cpu/simd-inl.h"
#include "kernels/cpu/stored.h"

HWY_BEFORE_NAMESPACE();
namespace fovea::cpu::HWY_NAMESPACE {
namespace {

// Returns the weights [K, C] of weight [C, K].
std::vector<float> turned_weights(In weight, const CausalConv& shape) {
  const int64_t C = shape.width, K = shape.kernel;
  std::vector<float> copy(static_cast<size_t>(C * K)), turned(copy.size());
  const float* const from = widened(weight, 0, C * K, copy.data());
  for (int64_t c = 0; c < C; ++c)
    for (int64_t j = 0; j < K; ++j) turned[static_cast<size_t>(j * C + c)] = from[c * K + j];
  return turned;
}

// The rows that a text's tokens read, as floats: those before it and its own from `begin` on.
class ConvRows {
 public:
  ConvRows(In x, const ConvText& text, const CausalConv& shape)
      : x_(x),
        text_(text),
        shape_(shape),
        copies_(static_cast<size_t>((shape.kernel + 1) * shape.width)) {}
  // Returns row t; null for the zeros before the text. Valid until K more rows were read.
  const float* row(int64_t t) {
    const int64_t K = shape_.kernel, C = shape_.width;
    float* const copy = copies_.data() + (t + K) % (K + 1) * C;
    if (t >= 0) return widened(x_, (text_.row + t) * C, C, copy);
    return text_.before.data == nullptr ? nullptr : widened(text_.before, (t + K - 1) * C, C, copy);
  }

 private:
  In x_;
  const ConvText& text_;
  const CausalConv& shape_;
  std::vector<float> copies_;
};

// Calls body(text, begin, end) for parts of the rows of all texts, on all threads.
template <class Body>
void each_part(std::span<const ConvText> texts, const CausalConv& shape, const Body& body) {
  for (const ConvText& text : texts)
    parallel_for(text.tokens, grain_of({text.tokens, shape.width * shape.kernel}),
                 [&](int64_t begin, int64_t end) HWY_ATTR { body(text, begin, end); });
}

void convolve(Out y, In x, In weight, In bias, std::span<const ConvText> texts,
              const CausalConv& shape) {
  const int64_t C = shape.width, K = shape.kernel;
  const std::vector<float> weights = turned_weights(weight, shape);
  std::vector<float> first(static_cast<size_t>(C));
  if (bias.data != nullptr) {
    std::vector<float> copy(first.size());
    std::copy_n(widened(bias, 0, C, copy.data()), C, first.data());
  }
  each_part(texts, shape, [&](const ConvText& text, int64_t begin, int64_t end) HWY_ATTR {
    ConvRows rows(x, text, shape);
    std::vector<float> output(static_cast<size_t>(C));
    for (int64_t t = begin; t < end; ++t) {
      const int64_t at = (text.row + t) * C;
      float* const to = room_for(y, at, output.data());
      const float* from = first.data();  // of the sum so far
      for (int64_t j = 0; j < K; ++j) {
        const float* const earlier = rows.row(t - K + 1 + j);
        if (earlier == nullptr) continue;
        map(
            to, C, [](Vector sum, Vector w, Vector v) HWY_ATTR { return hn::MulAdd(w, v, sum); },
            from, weights.data() + j * C, earlier);
        from = to;
      }
      if (from != to) std::copy_n(from, C, to);
      narrow_into(y, at, C, to);
    }
  });
}

void convolve_backward(Out dx, Out products, In dy, In x, In weight,
                       std::span<const ConvText> texts, const CausalConv& shape) {
  const int64_t C = shape.width, K = shape.kernel;
  const std::vector<float> weights = turned_weights(weight, shape);
  each_part(texts, shape, [&](const ConvText& text, int64_t begin, int64_t end) HWY_ATTR {
    ConvRows rows(x, text, shape);
    std::vector<float> sum(static_cast<size_t>(C)), copy(sum.size()),
        all_of(sum.size() * static_cast<size_t>(K));
    for (int64_t t = begin; t < end; ++t) {
      const int64_t at = (text.row + t) * C;
      if (products.data != nullptr) {
        const float* const g = widened(dy, at, C, copy.data());
        float* const to = room_for(products, at * K, all_of.data());
        for (int64_t j = 0; j < K; ++j) {
          const float* const earlier = rows.row(t - K + 1 + j);
          for (int64_t c = 0; c < C; ++c)
            to[c * K + j] = earlier == nullptr ? 0.0f : g[c] * earlier[c];
        }
        narrow_into(products, at * K, C * K, to);
      }
      if (dx.data == nullptr) continue;
      std::fill(sum.begin(), sum.end(), 0.0f);
      for (int64_t later = t; later < std::min(t + K, text.tokens); ++later)
        map(
            sum.data(), C,
            [](Vector s, Vector w, Vector v) HWY_ATTR { return hn::MulAdd(w, v, s); }, sum.data(),
            weights.data() + (K - 1 - (later - t)) * C,
            widened(dy, (text.row + later) * C, C, copy.data()));
      narrow_into(dx, at, C, sum.data());
    }
  });
}

}  // namespace
}  // namespace fovea::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace fovea::cpu {

HWY_EXPORT(convolve);
HWY_EXPORT(convolve_backward);

void causal_conv(Out y, In x, In weight, In bias, std::span<const ConvText> texts,
                 const CausalConv& shape) {
  check_stored_types(y, x, weight);
  HWY_DYNAMIC_DISPATCH(convolve)(y, x, weight, bias, texts, shape);
}

void causal_conv_backward(Out dx, Out products, In dy, In x, In weight,
                          std::span<const ConvText> texts, const CausalConv& shape) {
  check_stored_types(dy, x, weight);
  HWY_DYNAMIC_DISPATCH(convolve_backward)(dx, products, dy, x, weight, texts, shape);
}

}  // namespace fovea::cpu
#endif
