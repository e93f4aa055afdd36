// Attention on the model of a GPU: the bits of the CPU in fp32.

#include "kernels/layout/kv_page.h"
#include "support/gpu.h"
#include "unit/kernels/attention_calls.h"

namespace fovea {
namespace {

using namespace attention_test;
using test::gpu_kernels;
using test::wait_for_gpu;

Forward gpu_forward(const Inputs& x) {
  Forward found = forward(gpu_kernels().attention, x, x.q.dtype, DType::f32);
  wait_for_gpu();
  return found;
}
Backward gpu_backward(const Inputs& x, const Forward& of) {
  Backward found = backward(gpu_kernels().attention_backward, x, of, x.q.dtype);
  wait_for_gpu();
  return found;
}

void expect_bits_of_cpu(const Inputs& x) {
  const Forward expected = cpu_forward(x);
  const Backward gradients = cpu_backward(x, expected);
  for (const uint64_t order : {1, 2}) {
    cuda::set_model_order(order);
    const Forward actual = gpu_forward(x);
    EXPECT_TRUE(actual.y == expected.y) << "y, order " << order;
    EXPECT_TRUE(actual.lse == expected.lse) << "lse, order " << order;
    const Backward found = gpu_backward(x, expected);
    EXPECT_TRUE(found.dq == gradients.dq) << "dq, order " << order;
    EXPECT_TRUE(found.dk == gradients.dk) << "dk, order " << order;
    EXPECT_TRUE(found.dv == gradients.dv) << "dv, order " << order;
    EXPECT_TRUE(found.dbias == gradients.dbias) << "dbias, order " << order;
    if (x.sinks.size() == 0) continue;
    const Array terms = sink_terms(gpu_kernels().attention_sink_terms, x, expected, DType::f32);
    wait_for_gpu();
    EXPECT_TRUE(terms == sink_terms(cpu::attention_sink_terms, x, expected, DType::f32))
        << "sink terms, order " << order;
  }
  const auto weights = [&](const Kernels& kernels) {
    Array w(DType::f32, x.rows() * x.shape.keys);
    kernels.attention_weights(w.out(), x.q.in(), x.k.in(), x.call());
    wait_for_gpu();
    return w;
  };
  EXPECT_TRUE(weights(gpu_kernels()) == weights(cpu_kernels())) << "weights";
}

TEST(GpuAttention, HasTheBitsOfTheCpuAtOddShapes) {
  const int64_t shapes[][3] = {{1, 1, 1},   {1, 1, 7},    {2, 3, 20},  {16, 16, 16},
                               {64, 65, 5}, {65, 63, 32}, {3, 130, 8}, {20, 70, 80}};
  for (const auto& [queries, keys, width] : shapes) {
    SCOPED_TRACE(testing::Message() << queries << " queries, " << keys << " keys, width " << width);
    expect_bits_of_cpu(Inputs(shape_of(2, queries, keys, 2, 2, width)));
    expect_bits_of_cpu(Inputs(shape_of(1, queries, keys, 1, 1, width, causal())));
  }
}

TEST(GpuAttention, HasTheBitsOfTheCpuUnderEveryMask) {
  Mask left = causal(), right, none = causal(), prefix = causal(), global = causal(20, 10);
  left.valid = {{0, 80}, {37, 80}, {64, 80}};
  right.valid = {{0, 80}, {0, 65}, {0, 1}};
  none.valid = {{0, 80}, {9, 9}, {79, 80}};  // no keys; keys for the last query only
  prefix.prefix = 30;
  global.global = 3;
  Mask documents = causal();
  documents.documents = std::make_shared<DocumentStarts>(DocumentStarts{{0, 11, 66}, {0}, {0, 79}});
  for (const Mask& mask :
       {causal(), causal(50), causal(0, 17), left, right, none, prefix, global, documents}) {
    SCOPED_TRACE(testing::Message() << "window " << mask.window << ", first " << mask.first_query);
    const int64_t queries = mask.first_query > 0 ? 80 - mask.first_query : 80;
    expect_bits_of_cpu(Inputs(shape_of(3, queries, 80, 1, 1, 16, mask)));
  }
}

TEST(GpuAttention, HasTheBitsOfTheCpuWithItsOtherOptions) {
  expect_bits_of_cpu(Inputs(shape_of(2, 40, 70, 6, 2, 24, causal(30))));  // grouped heads
  AttentionShape shape = shape_of(2, 20, 70, 2, 1, 24);
  shape.value_width = 70;
  expect_bits_of_cpu(Inputs(shape));
  shape.value_width = 0;
  shape.capacity = 90;
  expect_bits_of_cpu(Inputs(shape));
  shape.softcap = 2;
  expect_bits_of_cpu(Inputs(shape));
  shape.dropout = {
      .probability = 0.3f, .seed = 5, .substream = 7, .step = 2, .units = 2, .first_unit = 4};
  expect_bits_of_cpu(Inputs(shape));
}

TEST(GpuAttention, HasTheBitsOfTheCpuWithAPositionBias) {
  for (const int64_t tables : {1, 2, 4}) {
    AttentionShape shape = shape_of(4, 20, 70, 2, 1, 16);
    shape.bias_tables = tables;
    expect_bits_of_cpu(Inputs(shape).with_bias());
  }
  Mask padded = causal();
  padded.valid = {{0, 80}, {37, 80}, {9, 9}};
  AttentionShape shape = shape_of(3, 80, 80, 2, 2, 16, padded);
  expect_bits_of_cpu(Inputs(shape).with_bias());
  shape.softcap = 2;
  shape.dropout = {.probability = 0.3f, .seed = 5, .units = 3};
  expect_bits_of_cpu(Inputs(shape).with_bias());
}

TEST(GpuAttention, HasTheBitsOfTheCpuWithSinks) {
  Mask padded = causal(0, 40);
  padded.valid = {{0, 80}, {37, 80}, {9, 9}};
  expect_bits_of_cpu(Inputs(shape_of(3, 80, 80, 4, 2, 20, padded)).with_sinks());
  expect_bits_of_cpu(Inputs(shape_of(2, 3, 70, 3, 3, 5)).with_sinks().with_bias());
}

// ---- On tensor cores

// Forward and backward. The bits differ in the order of sums alone.
void expect_close_to_cpu(const AttentionShape& shape, double tolerance = 0x1p-8,
                         bool sinks = false) {
  Inputs x(shape, DType::bf16);
  if (sinks) x.with_sinks();
  const Forward expected = cpu_forward(x);
  const Backward gradients = cpu_backward(x, expected);
  Forward first;
  Backward first_gradients;
  for (const uint64_t order : {1, 2}) {
    cuda::set_model_order(order);
    const Forward actual = gpu_forward(x);
    const Backward found = gpu_backward(x, expected);
    if (order == 2) {
      EXPECT_EQ(actual, first);
      EXPECT_EQ(found, first_gradients);
      continue;
    }
    expect_near(actual.y, expected.y, "y", tolerance);
    expect_near(actual.lse, expected.lse, "lse", 0x1p-8);
    expect_near(found.dq, gradients.dq, "dq", 0x1p-7);
    expect_near(found.dk, gradients.dk, "dk", 0x1p-7);
    expect_near(found.dv, gradients.dv, "dv", 0x1p-7);
    first = actual;
    first_gradients = found;
  }
}

TEST(GpuMmaAttention, IsCloseToTheCpu) {
  const int64_t shapes[][3] = {{1, 1, 8},    {2, 3, 20},    {16, 16, 64}, {64, 65, 5},
                               {70, 63, 72}, {3, 130, 128}, {70, 200, 64}};
  for (const auto& [queries, keys, width] : shapes) {
    SCOPED_TRACE(testing::Message() << queries << " queries, " << keys << " keys, width " << width);
    expect_close_to_cpu(shape_of(2, queries, keys, 2, 1, width));
    expect_close_to_cpu(shape_of(1, queries, keys, 1, 1, width, causal(keys - queries)));
  }
}

TEST(GpuMmaAttention, IsCloseToTheCpuWithItsOtherOptions) {
  Mask none = causal(), window = causal(30, 17);
  none.valid = {{0, 80}, {9, 9}, {79, 80}};
  window.global = 3;
  for (const Mask& mask : {none, window}) expect_close_to_cpu(shape_of(3, 50, 80, 4, 2, 16, mask));
  AttentionShape shape = shape_of(2, 20, 70, 2, 1, 24);
  expect_close_to_cpu(shape, 0x1p-8, true);
  shape.value_width = 70;
  shape.capacity = 140;
  shape.dropout = {
      .probability = 0.3f, .seed = 5, .substream = 7, .step = 2, .units = 2, .first_unit = 4};
  expect_close_to_cpu(shape);
  shape.softcap = 2;  // without tensor cores, and without rounded weights
  expect_close_to_cpu(shape, 0x1p-7);
}

// A query has the same bits alone and in company.
TEST(GpuMmaAttention, HasTheSameBitsInAnyChunks) {
  constexpr int64_t kKeys = 140, kWidth = 32;
  const Inputs whole(shape_of(1, kKeys, kKeys, 1, 1, kWidth, causal()), DType::bf16);
  const Forward all = gpu_forward(whole);
  for (const int64_t begin : {0, 1, 70, 139}) {
    const int64_t end = std::min<int64_t>(begin + 20, kKeys);
    Inputs part = whole;
    part.shape = shape_of(1, end - begin, end, 1, 1, kWidth, causal(begin));
    part.shape.capacity = kKeys;
    part.q = whole.q.slice(begin * kWidth, end * kWidth);
    EXPECT_EQ(gpu_forward(part).y, all.y.slice(begin * kWidth, end * kWidth)) << begin;
  }
}

TEST(GpuAttention, AddsIfRequestedAndSkipsUnusedOutputs) {
  const Inputs x(shape_of(1, 20, 30, 2, 1, 16));
  const Forward of = cpu_forward(x);
  const auto gradient = [&](const Kernels& kernels, Array dk) {
    kernels.attention_backward({}, dk.out(true), {}, {}, x.dy.in(), x.q.in(), x.k.in(), x.v.in(),
                               of.y.in(), of.lse.in(), x.call());
    wait_for_gpu();
    return dk;
  };
  const Array before = random_array(DType::f32, x.k.size(), 9);
  EXPECT_EQ(gradient(gpu_kernels(), before), gradient(cpu_kernels(), before));
}

}  // namespace
}  // namespace fovea
