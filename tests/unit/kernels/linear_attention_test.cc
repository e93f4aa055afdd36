// Compares linear attention in chunks with its recurrent form, whole and in pieces.

#include <tuple>
#include <utility>

#include "unit/kernels/compare.h"

namespace fovea {
namespace {

using test::Array;
using test::compare_everywhere;

// The chunks of `texts` texts of at most `tokens` tokens each.
struct Chunks {
  LinearAttention shape;
  int64_t of_text;

  Chunks(const LinearAttention& of, int64_t tokens)
      : shape(of), of_text((tokens + kChunkTokens - 1) / kChunkTokens) {}
  // The arrays of the states, keys, values and decays.
  std::vector<Array> arrays(int64_t texts) const {
    const auto array = [&](int64_t size) { return Array(texts * of_text * size, DType::f32); };
    return {array(shape.state_size()), array(shape.keys_size()), array(shape.values_size()),
            array(shape.decays_size())};
  }
  std::vector<LinearChunk> chunks(std::vector<Array>& arrays, size_t first, int64_t texts) const {
    std::vector<LinearChunk> chunks;
    const auto part = [&](size_t which, int64_t size, int64_t chunk) {
      return Out(arrays[first + which].floats() + chunk * size, DType::f32);
    };
    for (int64_t i = 0; i < texts * of_text; ++i)
      chunks.push_back({part(0, shape.state_size(), i), part(1, shape.keys_size(), i),
                        part(2, shape.values_size(), i), part(3, shape.decays_size(), i)});
    return chunks;
  }
};

struct Inputs {
  Array q, k, v, beta, decay;

  Inputs(const LinearAttention& shape, int64_t rows, DType dtype)
      : q(Array::normal(rows * shape.key_heads * shape.width, dtype, 1)),
        k(Array::normal(rows * shape.key_heads * shape.width, dtype, 2,
                        1 / std::sqrt(static_cast<double>(shape.width)))),
        v(Array::normal(rows * shape.heads * shape.value_width, dtype, 3)),
        beta(Array::normal(rows * shape.heads, DType::f32, 4)),
        decay(Array::normal(rows * shape.heads, DType::f32, 5)) {
    for (int64_t i = 0; i < beta.size(); ++i) {
      beta.floats()[i] = 1 / (1 + std::exp(-beta.floats()[i]));
      decay.floats()[i] = -0.3f * std::abs(decay.floats()[i]);
    }
  }
};

struct Size {
  int64_t heads, key_heads, width, value_width, tokens;
};
constexpr Size kSizes[] = {{1, 1, 1, 1, 1},     {2, 1, 5, 3, 7},     {3, 3, 17, 33, 65},
                           {4, 2, 32, 16, 128}, {2, 2, 64, 48, 200}, {1, 1, 130, 31, 67}};

std::string name_of(const Size& size) {
  return fmt::format("{} heads of {} x {}, {} tokens", size.heads, size.width, size.value_width,
                     size.tokens);
}

TEST(LinearAttention, MatchesTheRecurrentForm) {
  for (const Size& size : kSizes)
    for (const DType dtype : {DType::f32, DType::bf16})
      for (const bool delta : {false, true}) {
        LinearAttention shape{size.heads,       size.key_heads, size.width,
                              size.value_width, 0.5f,           delta};
        shape.tiled = size.tokens % 2 == 0;
        const int64_t texts = 2, rows = texts * size.tokens;
        const Inputs in(shape, rows, dtype);
        const Chunks chunks(shape, size.tokens);
        std::vector<Array> outputs{Array::normal(rows * size.heads * size.value_width, dtype, 6)};
        for (Array& array : chunks.arrays(texts)) outputs.push_back(array);
        compare_everywhere(outputs, name_of(size),
                           [&](const Kernels& kernels, std::vector<Array>& o) {
                             const std::vector<LinearChunk> all = chunks.chunks(o, 1, texts);
                             const LinearText spans[] = {
                                 {0, size.tokens, 0, all.data()},
                                 {size.tokens, size.tokens, 0, all.data() + chunks.of_text}};
                             kernels.linear_attention(o[0].out(), in.q.in(), in.k.in(), in.v.in(),
                                                      in.beta.in(), in.decay.in(), spans, shape);
                           });
      }
}

// A text of 200 tokens in passes of any lengths, and one after another token, has the bits of one
// pass.
TEST(LinearAttention, PiecesHaveTheBitsOfTheWhole) {
  for (const bool delta : {false, true}) {
    const LinearAttention shape{4, 2, 24, 40, 1, delta};
    constexpr int64_t kTokens = 200;
    const Inputs in(shape, kTokens, DType::f32);
    const Chunks chunks(shape, kTokens);
    const auto computed = [&](const std::vector<int64_t>& passes) {
      std::vector<Array> o = chunks.arrays(1);
      o.emplace_back(kTokens * 4 * 40, DType::f32);
      const std::vector<LinearChunk> all = chunks.chunks(o, 0, 1);
      int64_t done = 0;
      for (size_t i = 0; done < kTokens; ++i) {
        const int64_t tokens = std::min(passes[i % passes.size()], kTokens - done);
        const LinearText text{0, tokens, done, all.data()};
        const auto from = [&](const Array& x, int64_t width) {
          return In(const_cast<Array&>(x).floats() + done * width);
        };
        cpu_kernels().linear_attention(Out(o[4].floats() + done * 160), from(in.q, 48),
                                       from(in.k, 48), from(in.v, 160), from(in.beta, 4),
                                       from(in.decay, 4), {&text, 1}, shape);
        done += tokens;
      }
      return o;
    };
    const std::vector<Array> whole = computed({kTokens});
    for (const std::vector<int64_t>& passes :
         {std::vector<int64_t>{1}, {64}, {63, 2, 1}, {100}, {7, 90, 13}, {5}}) {
      const std::vector<Array> pieces = computed(passes);
      for (size_t i = 0; i < whole.size(); ++i)
        EXPECT_TRUE(pieces[i] == whole[i]) << "array " << i << ", passes of " << passes[0];
    }
  }
}

TEST(LinearAttention, GradientsMatchTheRecurrentForm) {
  for (const Size& size : kSizes)
    for (const DType dtype : {DType::f32, DType::bf16})
      for (const bool delta : {false, true})
        for (const bool added : {false, true}) {
          LinearAttention shape{size.heads,       size.key_heads, size.width,
                                size.value_width, 0.5f,           delta};
          shape.tiled = size.tokens % 2 == 0;
          const int64_t texts = 2, rows = texts * size.tokens;
          const Inputs in(shape, rows, dtype);
          const Array dy = Array::normal(rows * size.heads * size.value_width, dtype, 7);
          const Chunks chunks(shape, size.tokens);
          const auto like = [](const Array& x, uint64_t seed) {
            return Array::normal(x.size(), x.dtype(), seed);
          };
          compare_everywhere(
              {like(in.q, 8), like(in.k, 9), like(in.v, 10), like(in.beta, 11), like(in.decay, 12)},
              "gradients of " + name_of(size), [&](const Kernels& kernels, std::vector<Array>& o) {
                std::vector<Array> kept = chunks.arrays(texts);
                const std::vector<LinearChunk> all = chunks.chunks(kept, 0, texts);
                const LinearText spans[] = {
                    {0, size.tokens, 0, all.data()},
                    {size.tokens, size.tokens, 0, all.data() + chunks.of_text}};
                Array y(dy.size(), dtype);
                kernels.linear_attention(y.out(), in.q.in(), in.k.in(), in.v.in(), in.beta.in(),
                                         in.decay.in(), spans, shape);
                kernels.linear_attention_backward(
                    {o[0].out(added), o[1].out(added), o[2].out(added), o[3].out(added),
                     o[4].out(added)},
                    dy.in(), in.q.in(), in.v.in(), in.beta.in(), spans, shape);
              });
        }
}

TEST(CausalConv, MatchesTheReference) {
  for (const auto& [C, K, tokens] :
       {std::tuple{int64_t{1}, int64_t{1}, int64_t{1}}, {7, 4, 3}, {33, 3, 130}, {257, 4, 9}})
    for (const DType dtype : {DType::f32, DType::bf16}) {
      const int64_t rows = 2 * tokens;
      const Array x = Array::normal(rows * C, dtype, 1), weight = Array::normal(C * K, dtype, 2),
                  bias = Array::normal(C, dtype, 3), before = Array::normal((K - 1) * C, dtype, 4),
                  dy = Array::normal(rows * C, dtype, 5);
      const CausalConv shape{C, K};
      const std::string what = fmt::format("{} columns, kernel {}, {} tokens", C, K, tokens);
      const ConvText texts[] = {{0, tokens, {}}, {tokens, tokens, before.in()}};
      compare_everywhere({Array::normal(rows * C, dtype, 6)}, what,
                         [&](const Kernels& kernels, std::vector<Array>& o) {
                           kernels.causal_conv(o[0].out(), x.in(), weight.in(), bias.in(), texts,
                                               shape);
                         });
      const ConvText whole[] = {{0, tokens, {}}, {tokens, tokens, {}}};
      compare_everywhere({Array::normal(rows * C, dtype, 7), Array(rows * C * K, DType::f32)}, what,
                         [&](const Kernels& kernels, std::vector<Array>& o) {
                           kernels.causal_conv_backward(o[0].out(true), o[1].out(), dy.in(), x.in(),
                                                        weight.in(), whole, shape);
                         });
    }
}

// The rows of a text in passes have the bits of one pass.
TEST(CausalConv, PiecesHaveTheBitsOfTheWhole) {
  constexpr int64_t kTokens = 20, C = 19, K = 4;
  Array x = Array::normal((K - 1 + kTokens) * C, DType::f32, 1);
  std::fill_n(x.floats(), (K - 1) * C, 0.0f);  // before the text
  const Array weight = Array::normal(C * K, DType::f32, 2);
  Array whole(kTokens * C, DType::f32), pieces(kTokens * C, DType::f32);
  const float* const rows = x.floats() + (K - 1) * C;
  const ConvText all[] = {{0, kTokens, {}}};
  cpu_kernels().causal_conv(whole.out(), rows, weight.in(), {}, all, {C, K});
  for (const auto& [begin, tokens] : {std::pair{int64_t{0}, int64_t{5}}, {5, 1}, {6, 14}}) {
    const ConvText text[] = {{0, tokens, In(rows + (begin - K + 1) * C)}};
    cpu_kernels().causal_conv(Out(pieces.floats() + begin * C), rows + begin * C, weight.in(), {},
                              text, {C, K});
  }
  EXPECT_TRUE(pieces == whole);
}

}  // namespace
}  // namespace fovea
