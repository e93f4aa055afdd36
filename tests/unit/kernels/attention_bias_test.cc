// Attention with soft-capped scores, position biases, and masks of two intervals.

#include <tuple>

#include "kernels/isa.h"
#include "unit/kernels/attention_calls.h"

namespace fovea {
namespace {

using namespace attention_test;

using AttentionBias = EveryIsa;
INSTANTIATE_TEST_SUITE_P(EveryIsa, AttentionBias, ::testing::ValuesIn(testable_isas()),
                         name_of_isa);

std::vector<Mask> masks() {
  std::vector<Mask> all;
  for (const bool causal : {false, true}) {
    for (const auto& [first, window, global, prefix] :
         {std::tuple{0, 0, 0, 0}, std::tuple{5, 0, 0, 70}, std::tuple{60, 9, 0, 0},
          std::tuple{0, 20, 3, 0}, std::tuple{20, 17, 70, 0}, std::tuple{70, 1, 1, 2},
          std::tuple{0, 33, 5, 66}}) {
      Mask mask;
      mask.causal = causal;
      mask.first_query = first;
      mask.window = window;
      mask.global = global;
      mask.prefix = prefix;
      all.push_back(mask);
      mask.valid = {{2, 131}, {4, 120}};
      all.push_back(mask);
    }
  }
  return all;
}

TEST_P(AttentionBias, MatchesTheReferenceUnderEveryMask) {
  for (const Mask& mask : masks()) {
    SCOPED_TRACE(testing::Message()
                 << "causal " << mask.causal << ", first " << mask.first_query << ", window "
                 << mask.window << ", global " << mask.global << ", prefix " << mask.prefix
                 << ", valid " << mask.valid.size());
    AttentionShape shape = shape_of(2, 61, 131, 2, 1, 10, mask);
    expect_like_reference(shape, DType::f32);
    shape.softcap = 1.5f;
    expect_like_reference(Inputs(shape).with_bias());
    expect_like_reference(shape_of(2, 1, 131, 3, 3, 16, mask), DType::f32);
  }
}

TEST_P(AttentionBias, MatchesTheReferenceWithSinks) {
  for (const Mask& mask : masks()) {
    SCOPED_TRACE(testing::Message() << "causal " << mask.causal << ", window " << mask.window);
    expect_like_reference(Inputs(shape_of(2, 61, 131, 4, 2, 10, mask)).with_sinks());
  }
  Mask hidden = causal();
  hidden.valid = {{9, 9}, {0, 67}};  // row 0 sees its sinks alone
  for (const DType dtype : {DType::f32, DType::bf16}) {
    AttentionShape shape = shape_of(2, 67, 67, 6, 3, 17, hidden);
    expect_like_reference(Inputs(shape, dtype).with_sinks());
    shape.softcap = 1.5f;
    shape.dropout = {.probability = 0.3f, .seed = 7, .substream = 5, .step = 3};
    expect_like_reference(Inputs(shape, dtype).with_sinks().with_bias());
    Inputs small(shape_of(1, 3, 70, 2, 1, 16), dtype), large = small;
    small.with_sinks().sinks.set(0, -1e4);
    large.with_sinks().sinks.set(1, 1e4);
    expect_like_reference(small);
    expect_like_reference(large);
  }
}

TEST_P(AttentionBias, MatchesTheReferenceAtOddShapes) {
  const int64_t shapes[][3] = {{1, 1, 1},    {1, 7, 3},     {7, 1, 16},   {2, 3, 5},
                               {13, 64, 33}, {64, 65, 16},  {131, 1, 8},  {1, 131, 64},
                               {67, 67, 17}, {129, 130, 7}, {31, 97, 128}};
  for (const auto& [queries, keys, width] : shapes) {
    for (const DType dtype : {DType::f32, DType::bf16}) {
      SCOPED_TRACE(testing::Message() << queries << " queries, " << keys << " keys, width " << width
                                      << ' ' << name_of(dtype));
      expect_like_reference(Inputs(shape_of(2, queries, keys, 2, 1, width), dtype).with_bias());
      AttentionShape shape = shape_of(1, queries, keys, 2, 2, width, causal());
      shape.softcap = 1.5f;
      expect_like_reference(Inputs(shape, dtype).with_bias());
    }
  }
}

TEST_P(AttentionBias, DropsTheSameWeightsAsTheReference) {
  AttentionShape shape = shape_of(2, 70, 131, 4, 2, 16, causal(61));
  shape.dropout = {.probability = 0.3f, .seed = 7, .substream = 5, .step = 3};
  shape.softcap = 1.5f;
  expect_like_reference(Inputs(shape).with_bias());
  shape.dropout.first_unit = 3;
  expect_like_reference(Inputs(shape).with_bias());
  shape.dropout.units = 2;
  expect_like_reference(Inputs(shape).with_bias());
}

TEST_P(AttentionBias, MatchesTheReferenceWithATableForEachPartOfTheBatch) {
  AttentionShape shape = shape_of(4, 70, 70, 4, 2, 16, causal());
  for (const int64_t tables : {1, 2, 4}) {
    shape.bias_tables = tables;
    expect_like_reference(Inputs(shape).with_bias());
  }
}

// Checks scores far above and far below the cap.
TEST_P(AttentionBias, CapsScoresOfAnySize) {
  for (const float cap : {0.01f, 50.0f, 1e6f}) {
    AttentionShape shape = shape_of(1, 9, 70, 2, 2, 8);
    shape.softcap = cap;
    expect_like_reference(Inputs(shape));
  }
}

// The first two keys are visible to all queries and are followed by a long gap.
TEST_P(AttentionBias, SkipsKeysBetweenTwoIntervals) {
  Mask mask;
  mask.window = 40;
  mask.global = 2;
  for (const bool causal : {false, true}) {
    mask.causal = causal;
    Inputs x(shape_of(1, 400, 400, 2, 1, 8, mask));
    expect_like_reference(x);
    // Queries from 320 on do not see the keys [64, 256), which must not even be read.
    x.shape.queries = 80;
    x.shape.mask.first_query = 320;
    const Forward clean = cpu_forward(x);
    for (int64_t i = 64 * 8; i < 256 * 8; ++i) x.k.set(i, NAN), x.v.set(i, NAN);
    EXPECT_EQ(cpu_forward(x), clean);
  }
}

AttentionShape everything() {
  Mask mask = causal(0, 50);
  mask.global = 3;
  mask.valid = {{0, 150}, {2, 140}, {70, 150}};
  AttentionShape shape = shape_of(3, 150, 150, 4, 2, 20, mask);
  shape.softcap = 2;
  shape.dropout.probability = 0.1f;
  return shape;
}

TEST_P(AttentionBias, HasTheSameBitsOnAnyNumberOfThreadsAndInstructionSet) {
  for (const int64_t batch : {1, 3}) {
    AttentionShape shape = everything();
    shape.batch = batch;
    shape.mask.valid.resize(static_cast<size_t>(batch));
    const Inputs x = Inputs(shape).with_bias();
    use_isa("auto");
    set_threads(1);
    const Forward one = cpu_forward(x);
    const Backward gradients = cpu_backward(x, one);
    use_isa(GetParam());
    for (const int threads : {1, 2, 3, 8}) {
      set_threads(threads);
      EXPECT_EQ(cpu_forward(x), one);
      EXPECT_EQ(cpu_backward(x, one), gradients);
    }
  }
}

TEST_P(AttentionBias, HasTheSameBitsInAnyBatch) {
  AttentionShape shape = everything();
  shape.dropout.units = shape.bias_tables = 3;
  const Inputs x = Inputs(shape).with_bias();
  const Forward all = cpu_forward(x);
  const Backward gradients = cpu_backward(x, all);
  const int64_t rows = x.rows() / 3;
  for (int64_t row = 0; row < 3; ++row) {
    const auto own = [&](const Array& of) {
      return of.slice(row * of.size() / 3, (row + 1) * of.size() / 3);
    };
    Inputs alone = x;
    alone.shape.batch = alone.shape.dropout.units = alone.shape.bias_tables = 1;
    alone.shape.dropout.first_unit = row;
    alone.bias = own(x.bias);
    alone.shape.mask.valid = {shape.mask.valid[static_cast<size_t>(row)]};
    alone.q = own(x.q), alone.k = own(x.k), alone.v = own(x.v), alone.dy = own(x.dy);
    const Forward result = cpu_forward(alone);
    EXPECT_EQ(result.y, own(all.y));
    EXPECT_EQ(result.lse, all.lse.slice(row * rows, (row + 1) * rows));
    const Backward own_gradients = cpu_backward(alone, result);
    EXPECT_EQ(own_gradients.dq, own(gradients.dq));
    EXPECT_EQ(own_gradients.dk, own(gradients.dk));
    EXPECT_EQ(own_gradients.dv, own(gradients.dv));
    EXPECT_EQ(own_gradients.dbias, own(gradients.dbias));
  }
}

TEST_P(AttentionBias, HasWeightsWithTheSameBitsOnAnyThreadsAndInstructionSet) {
  const Inputs x = Inputs(everything()).with_bias();
  Array first(DType::f32, x.rows() * x.shape.keys), other = first;
  use_isa("auto");
  set_threads(1);
  cpu::attention_weights(first.out(), x.q.in(), x.k.in(), x.call());
  use_isa(GetParam());
  for (const int threads : {1, 3}) {
    set_threads(threads);
    cpu::attention_weights(other.out(), x.q.in(), x.k.in(), x.call());
    EXPECT_EQ(other, first);
  }
}

// Returns the part of a bias [heads, 2 T - 1] for queries [begin, end) on keys [0, end).
Array bias_of_chunk(const Array& bias, int64_t heads, int64_t tokens, int64_t begin, int64_t end) {
  Array part(bias.dtype, heads * (2 * end - begin - 1));
  int64_t at = 0;
  for (int64_t head = 0; head < heads; ++head)
    for (int64_t distance = -(end - 1); distance < end - begin; ++distance)
      part.set(at++, bias.get(head * (2 * tokens - 1) + distance + tokens - 1));
  return part;
}

TEST_P(AttentionBias, HasTheSameBitsInAnyChunks) {
  constexpr int64_t kTokens = 150, kHeads = 4, kRow = kHeads * 20;
  AttentionShape shape = everything();
  shape.dropout.probability = 0;
  shape.batch = 1;
  for (const Interval& valid : shape.mask.valid) {
    Inputs x = Inputs(shape).with_bias();
    x.shape.mask.valid = {valid};
    const Forward whole = cpu_forward(x);
    for (const int64_t chunk : {1, 7, 64, 100}) {
      for (int64_t begin = 0; begin < kTokens; begin += chunk) {
        const int64_t end = std::min(begin + chunk, kTokens);
        Inputs part = x;
        part.shape.queries = end - begin;
        part.shape.keys = end;
        part.shape.mask.first_query = begin;
        part.q = x.q.slice(begin * kRow, end * kRow);
        part.bias = bias_of_chunk(x.bias, kHeads, kTokens, begin, end);
        const Forward result = cpu_forward(part);
        ASSERT_EQ(result.y, whole.y.slice(begin * kRow, end * kRow)) << begin;
      }
    }
  }
}

// A bias of zeros gives the same results as no bias.
TEST_P(AttentionBias, HasNoEffectIfZero) {
  Inputs x(shape_of(2, 70, 70, 2, 2, 16, causal()));
  const Forward without = cpu_forward(x);
  const Backward gradients = cpu_backward(x, without);
  x.with_bias();
  std::fill(x.bias.bytes.begin(), x.bias.bytes.end(), char{0});
  EXPECT_EQ(cpu_forward(x), without);
  EXPECT_EQ(cpu_backward(x, without).dq, gradients.dq);
  EXPECT_EQ(cpu_backward(x, without).dk, gradients.dk);
}

TEST_P(AttentionBias, AddsToItsGradientIfRequested) {
  const Inputs x = Inputs(everything()).with_bias();
  const Forward result = cpu_forward(x);
  const Array plain = cpu_backward(x, result).dbias;
  Array sum = x.bias;
  cpu::attention_backward({}, {}, {}, sum.out(true), x.dy.in(), x.q.in(), x.k.in(), x.v.in(),
                          result.y.in(), result.lse.in(), x.call());
  for (int64_t i = 0; i < sum.size(); ++i)
    EXPECT_EQ(sum.get(i), static_cast<float>(x.bias.get(i)) + static_cast<float>(plain.get(i)));
}

// A T x T array of floats would take a gigabyte.
TEST_P(AttentionBias, NeedsMemoryLinearInTheLength) {
  Mask mask;
  mask.window = 100;
  mask.global = 1;
  const Inputs x = Inputs(shape_of(1, 16384, 16384, 1, 1, 4, mask)).with_bias();
  const Forward result = cpu_forward(x);
  const Backward gradients = cpu_backward(x, result);
  EXPECT_LT(most_memory(), 300 << 10);
  EXPECT_TRUE(std::isfinite(gradients.dbias.get(16383)));
}

TEST(AttentionBiasReference, FollowsItsDefinition) {
  Mask mask = causal(2, 2);
  mask.global = 1;
  AttentionShape shape = shape_of(1, 3, 5, 2, 1, 2, mask);
  shape.softcap = 1.25f;
  const Inputs x = Inputs(shape, DType::f64).with_bias(DType::f64);
  const Forward actual = forward(reference::attention, x, DType::f64, DType::f64);
  Array weights(DType::f64, 2 * 3 * 5);
  reference::attention_weights(weights.out(), x.q.in(), x.k.in(), x.call());
  for (int64_t head = 0; head < 2; ++head) {
    for (int64_t query = 0; query < 3; ++query) {
      double exponentials[5] = {}, sum = 0, y[2] = {};
      for (const int64_t key : {int64_t{0}, query + 1, query + 2}) {
        const int64_t q = (query * 2 + head) * 2, k = key * 2;
        const double score =
            (x.q.get(q) * x.k.get(k) + x.q.get(q + 1) * x.k.get(k + 1)) * shape.scale;
        exponentials[key] =
            std::exp(1.25 * std::tanh(score / 1.25) + x.bias.get(head * 7 + key - query + 2));
        sum += exponentials[key];
        for (int64_t d = 0; d < 2; ++d) y[d] += exponentials[key] * x.v.get(k + d);
      }
      for (int64_t key = 0; key < 5; ++key)
        EXPECT_NEAR(weights.get((head * 3 + query) * 5 + key), exponentials[key] / sum, 1e-14);
      for (int64_t d = 0; d < 2; ++d)
        EXPECT_NEAR(actual.y.get((query * 2 + head) * 2 + d), y[d] / sum, 1e-14);
    }
  }
}

}  // namespace
}  // namespace fovea
