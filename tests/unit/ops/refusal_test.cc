#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <numeric>

#include "ops/ops.h"
#include "tensor/tape.h"
#include "unit/base/expect_error.h"

namespace fovea {
namespace {

template <class Action>
void refused(std::initializer_list<std::string> texts, Action&& action) {
  SCOPED_TRACE(*texts.begin());
  expect_error(ErrorKind::InvalidArgument, texts, action);
}

Tensor integers(std::vector<int32_t> values) {
  Tensor y = empty({static_cast<int64_t>(values.size())}, DType::i32);
  std::copy(values.begin(), values.end(), y.data_as<int32_t>());
  return y;
}

TEST(Refuses, ShapesThatDoNotFitALinearLayer) {
  const Tensor x = zeros({2, 3});
  refused({"linear", "[4, 5]", "[2, 3]", "expected [N, C]"}, [&] { linear(x, zeros({4, 5})); });
  refused({"linear", "[3]", "expected [N, C]"}, [&] { linear(x, zeros({3})); });
  refused({"linear", "[1, 4, 3]"}, [&] { linear(x, zeros({1, 4, 3})); });
  refused({"linear", "x is []"}, [&] { linear(full({}, 1), zeros({4, 1})); });
  refused({"linear", "bias is [3]", "[4, 3]"}, [&] { linear(x, zeros({4, 3}), zeros({3})); });
  refused({"linear", "bias is [1, 4]"}, [&] { linear(x, zeros({4, 3}), zeros({1, 4})); });
}

TEST(Refuses, IdsThatAreNotInAnEmbedding) {
  const Tensor table = zeros({5, 3});
  refused({"embedding", "fp32", "int32"}, [&] { embedding(zeros({2}), table); });
  refused({"embedding", "[5]", "[V, C]"}, [&] { embedding(integers({0}), zeros({5})); });
  refused({"embedding", "id 5 at place 1", "0 to 4"}, [&] { embedding(integers({0, 5}), table); });
  refused({"embedding", "id -1 at place 0"}, [&] { embedding(integers({-1}), table); });
}

TEST(Refuses, WeightsThatDoNotFitANorm) {
  const Tensor x = zeros({2, 3}), weight = zeros({3});
  const auto norm = [&](const Tensor& w, const Tensor& b) {
    return layer_norm(x, w, b, 1e-5f, DType::f32);
  };
  refused({"layer_norm", "weight is [2]", "is 3"}, [&] { norm(zeros({2}), {}); });
  refused({"layer_norm", "weight is [1, 3]"}, [&] { norm(zeros({1, 3}), {}); });
  refused({"layer_norm", "bias is [4]", "is 3"}, [&] { norm(weight, zeros({4})); });
  refused({"rms_norm", "weight is [2]", "is 3"},
          [&] { rms_norm(x, zeros({2}), 1e-5f, DType::f32); });
}

TEST(Refuses, ShapesThatDoNotFitAttention) {
  const Tensor q = zeros({2, 3, 4, 8});
  const auto with = [&](Shape k, const AttentionOptions& options = {}) {
    const Tensor keys = zeros(std::move(k));
    attention(q, keys, keys, options);
  };
  const auto weights = [&](Shape k, const AttentionOptions& options = {}) {
    attention_weights(q, zeros(std::move(k)), options);
  };
  for (const Shape& k : {Shape{2, 5, 4}, Shape{1, 5, 4, 8}, Shape{2, 5, 4, 7}, Shape{2, 5, 3, 8},
                         Shape{2, 5, 8, 8}, Shape{2, 5, 0, 8}}) {
    refused({"attention", describe(k), "[2, 3, 4, 8]", "multiple of G"}, [&] { with(k); });
    refused({"attention", describe(k), "[2, 3, 4, 8]", "multiple of G"}, [&] { weights(k); });
  }
  refused({"attention", "equal shapes"}, [&] {
    attention(q, zeros({2, 5, 4, 8}), zeros({2, 6, 4, 8}), {});
  });
  AttentionOptions options;
  options.keys = 6;
  refused({"attention", "6 keys of 5"}, [&] { with({2, 5, 4, 8}, options); });
  refused({"attention", "6 keys of 5"}, [&] { weights({2, 5, 4, 8}, options); });
  options = {};
  options.mask.valid = {{0, 5}};
  refused({"attention", "mask has 1 rows", "batch 2"}, [&] { with({2, 5, 4, 8}, options); });
  options = {};
  options.dropout.probability = 1;
  refused({"attention", "dropout 1"}, [&] { with({2, 5, 4, 8}, options); });
}

TEST(Refuses, ElementsThatDoNotPair) {
  refused({"add", "[2, 3]", "[3, 2]"}, [] { add(zeros({2, 3}), zeros({3, 2})); });
  refused({"add", "[3]", "[1]"}, [] { add(zeros({3}), zeros({1})); });
  refused({"multiply", "[2, 3]", "[6]"}, [] { multiply(zeros({2, 3}), zeros({6})); });
}

TEST(Refuses, ProbabilitiesOfDropoutThatAreNone) {
  for (const float probability : {-0.1f, 1.0f, 2.0f, NAN}) {
    refused({"dropout", "expected a probability below 1"},
            [&] { dropout(zeros({3}), {.probability = probability}); });
  }
}

TEST(Refuses, TargetsThatDoNotFitTheirLogits) {
  const Tensor logits = zeros({2, 3});
  refused({"cross_entropy", "int32 [1]", "[2, 3]"}, [&] { cross_entropy(logits, integers({0})); });
  refused({"cross_entropy", "fp32 [2]"}, [&] { cross_entropy(logits, zeros({2})); });
  refused({"cross_entropy", "target 3 at place 1", "less than 3"}, [&] {
    cross_entropy(logits, integers({-100, 3}));
  });
}

// Kernels work on floating numbers; anything else is a mistake of the library's own.
TEST(Refuses, ToComputeWithIntegers) {
  const Tensor x = integers({1, 2});
  for (const auto& op : std::vector<std::function<void()>>{
           [&] { activation(x, Activation::relu); }, [&] { add(x, x); }, [&] { multiply(x, x); },
           [&] { cast(x, DType::f32); }, [&] { cast(x, DType::f64); }}) {
    expect_error(ErrorKind::Internal, {"int32 is not computed with"}, op);
  }
}

TEST(Edges, OfNothingAreNothing) {
  Tensor x = zeros({0, 3});
  x.want_gradient();
  EXPECT_EQ(linear(x, zeros({2, 3})).shape(), (Shape{0, 2}));
  EXPECT_EQ(activation(x, Activation::gelu).size(), 0);
  EXPECT_EQ(layer_norm(x, zeros({3}), {}, 1e-5f, DType::f32).size(), 0);
  EXPECT_EQ(to_floats(cross_entropy(x, integers({}))), std::vector<float>{0});
  // A sum over no inputs is zero, and a bias stays.
  EXPECT_EQ(to_floats(linear(zeros({2, 0}), zeros({3, 0}))), std::vector<float>(6, 0));
  EXPECT_EQ(to_floats(linear(zeros({2, 0}), zeros({1, 0}), full({1}, 4))),
            std::vector<float>(2, 4));
  clear_tape();
}

TEST(Edges, KeepTensorsThatNeedNoWork) {
  const Tensor x = zeros({2, 3});
  EXPECT_EQ(cast(x, DType::f32).data(), x.data());
  EXPECT_EQ(dropout(x, {}).data(), x.data());
}

TEST(Dropout, DependsOnItsSeedItsPlaceAndItsStepAlone) {
  const Tensor x = full({1000}, 1);
  const Dropout options{.probability = 0.5f, .seed = 1, .substream = 2, .step = 3};
  const std::vector<float> first = to_floats(dropout(x, options));
  EXPECT_EQ(to_floats(dropout(x, options)), first);
  EXPECT_NEAR(std::accumulate(first.begin(), first.end(), 0.0), 1000, 150);
  for (const float value : first) EXPECT_TRUE(value == 0 || value == 2);
  Dropout seed = options, place = options, step = options;
  seed.seed = 2, place.substream = 3, step.step = 4;
  for (const Dropout& other : {seed, place, step}) EXPECT_NE(to_floats(dropout(x, other)), first);
}

}  // namespace
}  // namespace fovea
