#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "kernels/isa.h"
#include "unit/kernels/attention_calls.h"

namespace fovea {
namespace {

using namespace attention_test;

constexpr float kInfinity = std::numeric_limits<float>::infinity();

using Attention = EveryIsa;
INSTANTIATE_TEST_SUITE_P(EveryIsa, Attention, ::testing::ValuesIn(testable_isas()), name_of_isa);

TEST_P(Attention, MatchesTheReferenceAtOddShapes) {
  const int64_t shapes[][3] = {{1, 1, 1},     {1, 1, 7},     {2, 3, 20},   {13, 13, 33},
                               {16, 16, 16},  {31, 64, 32},  {64, 65, 48}, {65, 63, 64},
                               {97, 131, 80}, {129, 129, 5}, {1, 200, 64}, {140, 1, 128},
                               {20, 70, 256}};
  for (const auto& [queries, keys, width] : shapes) {
    for (const DType dtype : {DType::f32, DType::bf16}) {
      SCOPED_TRACE(testing::Message() << queries << " queries, " << keys << " keys, width " << width
                                      << ' ' << name_of(dtype));
      expect_like_reference(shape_of(2, queries, keys, 2, 2, width), dtype);
      expect_like_reference(shape_of(1, queries, keys, 1, 1, width, causal()), dtype);
    }
  }
}

TEST_P(Attention, MatchesTheReferenceUnderEveryMask) {
  Mask left = causal(), right, both = causal(60, 40), none = causal();
  left.valid = {{0, 150}, {37, 150}, {64, 150}};
  right.valid = {{0, 150}, {0, 65}, {0, 1}};
  both.valid = {{3, 150}, {70, 149}, {5, 120}};
  none.valid = {{0, 150}, {9, 9}, {149, 150}};  // no keys; keys for the last query only
  for (const Mask& mask : {causal(), causal(1), causal(50), causal(0, 1), causal(0, 17),
                           causal(50, 64), causal(3, 100), left, right, both, none}) {
    SCOPED_TRACE(testing::Message() << "first query " << mask.first_query << ", window "
                                    << mask.window << ", valid " << mask.valid.size());
    expect_like_reference(shape_of(3, 90, 150, 2, 1, 24, mask), DType::f32);
    expect_like_reference(shape_of(3, 150, 150, 2, 2, 20, mask), DType::f32);
    expect_like_reference(shape_of(3, 33, 150, 1, 1, 16, mask), DType::bf16);
  }
}

Mask with_documents(Mask mask, DocumentStarts starts) {
  mask.documents = std::make_shared<const DocumentStarts>(std::move(starts));
  return mask;
}

TEST_P(Attention, MatchesTheReferenceIfRowsHoldDocuments) {
  const DocumentStarts starts = {{0}, {0, 1, 2, 64, 150}, {0, 7, 30, 47, 48, 49, 131}};
  Mask padded = causal();
  padded.valid = {{0, 150}, {0, 100}, {0, 1}};
  Mask global = causal(0, 9);
  global.global = 2;
  for (const Mask& mask : {Mask(), causal(), causal(60), causal(0, 20), global, padded}) {
    const Mask divided = with_documents(mask, starts);
    SCOPED_TRACE(testing::Message() << "first query " << mask.first_query << ", window "
                                    << mask.window << ", valid " << mask.valid.size());
    expect_like_reference(shape_of(3, 90, 150, 2, 1, 24, divided), DType::f32);
    expect_like_reference(shape_of(3, 150, 150, 2, 2, 20, divided), DType::bf16);
    Inputs biased(shape_of(3, 150, 150, 2, 2, 16, divided));
    expect_like_reference(biased.with_bias());
  }
}

// The document of `tokens` tokens that begins at token `begin`, as the only one of a row.
Inputs alone(const Inputs& x, int64_t begin, int64_t tokens) {
  Inputs own = x;
  const AttentionShape& s = x.shape;
  own.shape.queries = own.shape.keys = own.shape.capacity = tokens;
  own.shape.mask.documents = nullptr;
  const auto part = [&](const Array& of, int64_t row) {
    return of.slice(begin * row, (begin + tokens) * row);
  };
  own.q = part(x.q, s.heads * s.width), own.dy = part(x.dy, s.heads * s.width);
  own.k = part(x.k, s.kv_heads * s.width), own.v = part(x.v, s.kv_heads * s.width);
  return own;
}

// Documents that begin at a multiple of the tiles' length.
TEST_P(Attention, HasTheSameBitsForADocumentAloneOrInARow) {
  const std::vector<int64_t> starts = {0, 64, 192, 320};
  constexpr int64_t kTokens = 397, kHeads = 4, kGroups = 2, kWidth = 20, kRow = kHeads * kWidth;
  Mask global = causal(0, 30);
  global.global = 3;
  for (const DType dtype : {DType::f32, DType::bf16}) {
    for (const Mask& mask : {Mask(), causal(), causal(0, 30), global}) {
      const Inputs x(
          shape_of(1, kTokens, kTokens, kHeads, kGroups, kWidth, with_documents(mask, {starts})),
          dtype);
      const Forward row = cpu_forward(x);
      const Backward gradients = cpu_backward(x, row);
      for (size_t i = 0; i < starts.size(); ++i) {
        const int64_t begin = starts[i], end = i + 1 < starts.size() ? starts[i + 1] : kTokens;
        const Inputs own = alone(x, begin, end - begin);
        const Forward result = cpu_forward(own);
        ASSERT_EQ(result.y, row.y.slice(begin * kRow, end * kRow)) << begin;
        for (int64_t head = 0; head < kHeads; ++head)
          ASSERT_EQ(result.lse.slice(head * (end - begin), (head + 1) * (end - begin)),
                    row.lse.slice(head * kTokens + begin, head * kTokens + end));
        const Backward of_own = cpu_backward(own, result);
        constexpr int64_t kKeys = kGroups * kWidth;
        EXPECT_EQ(of_own.dq, gradients.dq.slice(begin * kRow, end * kRow));
        EXPECT_EQ(of_own.dk, gradients.dk.slice(begin * kKeys, end * kKeys));
        EXPECT_EQ(of_own.dv, gradients.dv.slice(begin * kKeys, end * kKeys));
      }
    }
  }
}

TEST_P(Attention, SharesKeysAmongGroupedHeads) {
  for (const int64_t kv_heads : {1, 2, 3, 6}) {
    expect_like_reference(shape_of(2, 75, 75, 6, kv_heads, 16, causal()), DType::f32);
    expect_like_reference(shape_of(2, 1, 75, 6, kv_heads, 16, causal(74)), DType::f32);
  }
  expect_like_reference(shape_of(1, 3, 70, 200, 1, 4, causal(67)), DType::f32);
}

// Multi-head latent attention has wider keys than values.
TEST_P(Attention, ValuesMayHaveAnotherWidthThanKeys) {
  for (const auto& [width, value_width] : {std::pair{24, 16}, {16, 24}, {5, 40}, {33, 1}, {96, 64}})
    for (const DType dtype : {DType::f32, DType::bf16}) {
      SCOPED_TRACE(testing::Message() << width << " and " << value_width << ' ' << name_of(dtype));
      AttentionShape shape = shape_of(2, 75, 131, 4, 2, width, causal(56));
      shape.value_width = value_width;
      expect_like_reference(shape, dtype);
      shape.capacity = 140;
      shape.dropout = {.probability = 0.3f, .seed = 7, .substream = 5, .step = 3};
      expect_like_reference(shape, dtype);
      shape.heads = shape.kv_heads = 1;  // one head: tasks share its rows and its keys
      shape.queries = shape.keys = 140;
      shape.mask = causal();
      expect_like_reference(shape, dtype);
    }
}

TEST_P(Attention, SkipsUnusedCapacity) {
  AttentionShape shape = shape_of(2, 20, 70, 4, 2, 12, causal(50));
  shape.capacity = 90;
  expect_like_reference(shape, DType::f32);
  Inputs x(shape);
  const Forward clean = cpu_forward(x);
  for (int64_t i = 0; i < 20 * 2 * 12; ++i) {
    x.k.set(70 * 2 * 12 + i, NAN);
    x.v.set(70 * 2 * 12 + i, NAN);
  }
  EXPECT_EQ(cpu_forward(x), clean);
}

TEST_P(Attention, DropsTheSameWeightsAsTheReference) {
  AttentionShape shape = shape_of(2, 70, 131, 4, 2, 16, causal(61));
  shape.dropout = {.probability = 0.3f, .seed = 0x123456789abcdef0u, .substream = 5, .step = 3};
  expect_like_reference(shape, DType::f32);
  expect_like_reference(shape, DType::bf16);
  shape.dropout.probability = 0.999f;
  expect_like_reference(shape, DType::f32);
}

TEST_P(Attention, GivesZeroIfAllKeysAreMasked) {
  Mask mask = causal();
  mask.valid = {{5, 5}, {70, 80}};
  const AttentionShape shape = shape_of(2, 80, 80, 2, 2, 8, mask);
  const Inputs x(shape);
  const Forward result = cpu_forward(x);
  const Backward gradients = cpu_backward(x, result);
  for (int64_t i = 0; i < 80 * 16; ++i) {
    EXPECT_EQ(result.y.get(i), 0);
    EXPECT_EQ(gradients.dq.get(i), 0);
    EXPECT_EQ(gradients.dk.get(i), 0);
    EXPECT_EQ(gradients.dv.get(i), 0);
  }
  for (int64_t i = 0; i < 160; ++i) EXPECT_EQ(result.lse.get(i), -kInfinity);
  EXPECT_EQ(result.lse.get(160 + 69), -kInfinity);
  EXPECT_TRUE(std::isfinite(result.lse.get(160 + 70)));
}

TEST_P(Attention, PropagatesNaN) {
  Inputs x(shape_of(1, 3, 3, 1, 1, 4, causal()));
  x.q.set(4, NAN);
  const Forward result = cpu_forward(x);
  EXPECT_FALSE(std::isnan(result.y.get(0)));
  EXPECT_TRUE(std::isnan(result.y.get(4)));
  EXPECT_TRUE(std::isnan(result.lse.get(1)));
  EXPECT_FALSE(std::isnan(result.y.get(8)));
}

TEST_P(Attention, KeepsLargeScoresFinite) {
  AttentionShape shape = shape_of(1, 5, 100, 1, 1, 16);
  shape.scale = 300;
  const Inputs x(shape);
  const Forward truth = forward(reference::attention, x, DType::f64, DType::f64);
  const Forward result = cpu_forward(x);
  for (int64_t i = 0; i < result.y.size(); ++i) EXPECT_NEAR(result.y.get(i), truth.y.get(i), 5e-3);
}

TEST_P(Attention, AddsIfRequestedAndSkipsUnusedOutputs) {
  for (const int64_t heads : {1, 4}) {
    const Inputs x(shape_of(1, 70, 70, heads, heads, 20, causal()));
    const Forward result = cpu_forward(x);
    const Backward plain = cpu_backward(x, result);
    const auto run = [&](Out dq, Out dk, Out dv) {
      cpu::attention_backward(dq, dk, dv, {}, x.dy.in(), x.q.in(), x.k.in(), x.v.in(),
                              result.y.in(), result.lse.in(), x.shape);
    };
    Backward sum{x.q, x.k, x.v, {}}, one = plain;
    run(sum.dq.out(true), sum.dk.out(true), sum.dv.out(true));
    for (int64_t i = 0; i < x.q.size(); ++i) {
      const auto expected = [&](const Array& old, const Array& more) {
        return static_cast<float>(old.get(i)) + static_cast<float>(more.get(i));
      };
      EXPECT_EQ(sum.dq.get(i), expected(x.q, plain.dq));
      EXPECT_EQ(sum.dk.get(i), expected(x.k, plain.dk));
      EXPECT_EQ(sum.dv.get(i), expected(x.v, plain.dv));
    }
    for (int which = 0; which < 3; ++which) {
      Backward only{Array(DType::f32, x.q.size()),
                    Array(DType::f32, x.q.size()),
                    Array(DType::f32, x.q.size()),
                    {}};
      run(which == 0 ? only.dq.out() : Out{}, which == 1 ? only.dk.out() : Out{},
          which == 2 ? only.dv.out() : Out{});
      EXPECT_EQ(which == 0 ? only.dq : plain.dq, plain.dq);
      EXPECT_EQ(which == 1 ? only.dk : plain.dk, plain.dk);
      EXPECT_EQ(which == 2 ? only.dv : plain.dv, plain.dv);
    }
    Forward no_lse{Array(DType::f32, x.q.size()), {}};
    cpu::attention(no_lse.y.out(), {}, x.q.in(), x.k.in(), x.v.in(), x.shape);
    EXPECT_EQ(no_lse.y, result.y);
  }
}

TEST_P(Attention, HasTheSameBitsOnAnyNumberOfThreads) {
  for (const int64_t heads : {1, 3, 4}) {
    AttentionShape shape = shape_of(1, 300, 300, heads, 1, 32, causal());
    shape.dropout.probability = 0.1f;
    const Inputs x(shape);
    set_threads(1);
    const Forward one = cpu_forward(x);
    const Backward gradients = cpu_backward(x, one);
    for (const int threads : {2, 3}) {
      set_threads(threads);
      EXPECT_EQ(cpu_forward(x), one);
      EXPECT_EQ(cpu_backward(x, one), gradients);
    }
  }
}

TEST_P(Attention, HasTheSameBitsOnEveryInstructionSet) {
  for (const int64_t width : {7, 16, 64, 96}) {
    for (const DType dtype : {DType::f32, DType::bf16}) {
      AttentionShape shape = shape_of(2, 100, 150, 4, 2, width, causal(50));
      shape.dropout.probability = 0.1f;
      const Inputs x(shape, dtype);
      use_isa("auto");
      const Forward widest = cpu_forward(x);
      const Backward gradients = cpu_backward(x, widest);
      use_isa(GetParam());
      EXPECT_EQ(cpu_forward(x), widest);
      EXPECT_EQ(cpu_backward(x, widest), gradients);
    }
  }
}

// Reads a prompt at once, in chunks, or token by token, from a cache with free space.
TEST_P(Attention, HasTheSameBitsInAnyChunks) {
  constexpr int64_t kTokens = 150, kHeads = 4, kGroups = 2, kWidth = 20, kRow = kHeads * kWidth;
  for (const int64_t window : {0, 30}) {
    Inputs x(shape_of(1, kTokens, kTokens, kHeads, kGroups, kWidth, causal(0, window)));
    x.shape.mask.valid = {{3, kTokens}};
    const Forward whole = cpu_forward(x);
    for (const int64_t chunk : {1, 7, 64, 100}) {
      for (int64_t begin = 0; begin < kTokens; begin += chunk) {
        const int64_t end = std::min(begin + chunk, kTokens);
        Inputs part = x;
        part.shape.queries = end - begin;
        part.shape.keys = end;
        part.shape.mask.first_query = begin;
        part.q = x.q.slice(begin * kRow, end * kRow);
        const Forward result = cpu_forward(part);
        ASSERT_EQ(result.y, whole.y.slice(begin * kRow, end * kRow)) << begin;
        for (int64_t head = 0; head < kHeads; ++head) {
          ASSERT_EQ(result.lse.slice(head * (end - begin), (head + 1) * (end - begin)),
                    whole.lse.slice(head * kTokens + begin, head * kTokens + end));
        }
      }
    }
  }
}

TEST_P(Attention, HasTheSameBitsInAnyBatch) {
  AttentionShape shape = shape_of(3, 80, 80, 2, 2, 24, causal());
  shape.mask.valid = {{10, 80}, {0, 80}, {37, 60}};
  const Inputs x(shape);
  const Forward all = cpu_forward(x);
  const Backward gradients = cpu_backward(x, all);
  const int64_t size = x.q.size() / 3;
  for (int64_t row = 0; row < 3; ++row) {
    const auto own = [&](const Array& of) { return of.slice(row * size, (row + 1) * size); };
    Inputs alone = x;
    alone.shape.batch = 1;
    alone.shape.mask.valid = {shape.mask.valid[static_cast<size_t>(row)]};
    alone.q = own(x.q), alone.k = own(x.k), alone.v = own(x.v), alone.dy = own(x.dy);
    const Forward result = cpu_forward(alone);
    EXPECT_EQ(result.y, own(all.y));
    EXPECT_EQ(cpu_backward(alone, result),
              (Backward{own(gradients.dq), own(gradients.dk), own(gradients.dv), {}}));
  }
}

// A T x T array of floats would take a gigabyte.
TEST_P(Attention, NeedsMemoryLinearInTheLength) {
  const Inputs x(shape_of(1, 16384, 16384, 1, 1, 4, causal()));
  const Forward result = cpu_forward(x);
  const Backward gradients = cpu_backward(x, result);
  EXPECT_LT(most_memory(), 300 << 10);
  EXPECT_EQ(result.y.get(0), x.v.get(0));
  EXPECT_TRUE(std::isfinite(gradients.dk.get(0)));
}

TEST_P(Attention, ReturnsItsWeights) {
  Inputs x(shape_of(2, 9, 70, 4, 2, 8, causal(61)));
  x.shape.mask.valid = {{3, 70}, {0, 70}};
  Array weights(DType::f32, x.rows() * 70);
  cpu::attention_weights(weights.out(), x.q.in(), x.k.in(), x.shape);
  const Forward result = cpu_forward(x);
  for (int64_t row = 0; row < x.rows(); ++row) {
    const int64_t batch = row / 36, head = row / 9 % 4, token = row % 9;
    double sum = 0, y = 0;
    for (int64_t key = 0; key < 70; ++key) {
      const double weight = weights.get(row * 70 + key);
      const bool hidden = key > 61 + token || (batch == 0 && key < 3);
      EXPECT_EQ(weight == 0, hidden);
      sum += weight;
      y += weight * x.v.get(((batch * 70 + key) * 2 + head / 2) * 8);
    }
    EXPECT_NEAR(sum, 1, 1e-5);
    EXPECT_NEAR(y, result.y.get(((batch * 9 + token) * 4 + head) * 8), 1e-5);
  }
}

TEST(AttentionReference, GradientMatchesFiniteDifferences) {
  AttentionShape shape = shape_of(2, 4, 6, 4, 2, 3, causal(1, 4));
  shape.mask.valid = {{1, 6}, {0, 4}};
  shape.dropout.probability = 0.25f;
  Inputs x(shape, DType::f64);
  const auto loss = [&] {
    const Array y = forward(reference::attention, x, DType::f64, DType::f64).y;
    double sum = 0;
    for (int64_t i = 0; i < y.size(); ++i) sum += y.get(i) * x.dy.get(i);
    return sum;
  };
  const Backward gradients =
      backward(reference::attention_backward, x,
               forward(reference::attention, x, DType::f64, DType::f64), DType::f64);
  const auto check_gradient = [&](Array& of, const Array& gradient) {
    constexpr double kStep = 1e-5;
    for (int64_t i = 0; i < of.size(); ++i) {
      const double old = of.get(i);
      of.set(i, old + kStep);
      const double above = loss();
      of.set(i, old - kStep);
      const double below = loss();
      of.set(i, old);
      EXPECT_NEAR(gradient.get(i), (above - below) / (2 * kStep), 1e-8) << i;
    }
  };
  check_gradient(x.q, gradients.dq);
  check_gradient(x.k, gradients.dk);
  check_gradient(x.v, gradients.dv);
}

}  // namespace
}  // namespace fovea
