// Ops with conventions that a gradient check cannot verify, compared with the results of PyTorch
// 2.15 and Transformers 5.23 for the same small inputs.

#include <gtest/gtest.h>

#include "tensor/tape.h"
#include "unit/ops/cases.h"

namespace fovea {
namespace {

using test::integers;

void expect_near(const Tensor& actual, const std::vector<float>& expected,
                 float tolerance = 2e-6f) {
  const std::vector<float> values = to_floats(actual);
  ASSERT_EQ(values.size(), expected.size());
  for (size_t i = 0; i < values.size(); ++i) EXPECT_NEAR(values[i], expected[i], tolerance) << i;
}

std::vector<int32_t> list(const Tensor& x) {
  return {x.data_as<int32_t>(), x.data_as<int32_t>() + x.size()};
}

Tensor router_logits() {
  return tensor_of({0.5f, 2, 2, -1, 1, 1, 1, 1, -3, 0, -0.0f, 0, 3, 2, 1, 0.5f, 0, 0, 0.25f, 0.25f},
                   {5, 4});
}

// The weights equal those of PyTorch's topk. The experts equal topk's only where no two logits are
// equal, since the order of topk in ties is undefined.
TEST(Route, PrefersLowerExpertsInTies) {
  const auto [weights, experts] =
      route(router_logits(), {.choice = {.chosen = 2}, .normalise = false});
  EXPECT_EQ(list(experts), (std::vector<int32_t>{1, 2, 0, 1, 1, 2, 0, 1, 2, 3}));
  expect_near(weights, {0.4399632f, 0.4399632f, 0.25f, 0.25f, 0.3278917f, 0.3278917f, 0.6307955f,
                        0.2320567f, 0.2810883f, 0.2810883f});
  expect_near(route(router_logits(), {.choice = {.chosen = 2}}).weights,
              {0.5f, 0.5f, 0.5f, 0.5f, 0.5f, 0.5f, 0.7310585f, 0.2689414f, 0.5f, 0.5f});
}

TEST(Route, AcceptsNonFiniteLogits) {
  const float nan = std::nanf(""), infinity = HUGE_VALF;
  const auto [weights, experts] =
      route(tensor_of({nan, nan, nan, 1, nan, 2, -infinity, infinity, 0}, {3, 3}),
            {.choice = {.chosen = 2}});
  for (const int32_t expert : list(experts)) EXPECT_TRUE(expert >= 0 && expert < 3);
}

TEST(Route, DoesNotDependOnOtherRows) {
  const Tensor logits = convert(test::normal({9, 37}, 1), DType::f32);
  const RouteOptions options{.choice = {.chosen = 3}, .normalise = false};
  const Routing all = route(logits, options);
  for (int64_t r = 0; r < 9; ++r) {
    const Routing one = route(logits.rows(r, r + 1), options);
    EXPECT_EQ(list(one.experts), list(all.experts.rows(r, r + 1)));
    EXPECT_EQ(to_floats(one.weights), to_floats(all.weights.rows(r, r + 1)));
  }
}

// Group-limited routing of DeepSeek-V2: 6 experts in 3 groups with the best logits 3, 2 and 4.
TEST(Route, ChoosesFromTheGroupsWithTheBestExpert) {
  const Tensor logits = tensor_of({3, -1, 2, 1.5f, 4, -2}, {1, 6});
  const RouteOptions options{.choice = {.chosen = 3, .groups = 3, .groups_chosen = 2}, .scale = 2};
  const auto [weights, experts] = route(logits, options);
  EXPECT_EQ(list(experts), (std::vector<int32_t>{4, 0, 1}));   // not 2: its group is not chosen
  expect_near(weights, {1.4549503f, 0.5352463f, 0.0098034f});  // 2 softmax(4, 3, -1)
  const RouteOptions all{.choice = {.chosen = 3}, .normalise = false};
  EXPECT_EQ(list(route(logits, all).experts), (std::vector<int32_t>{4, 0, 2}));
}

// The router of DeepSeek-V3. The sigmoids of the logits are 0.5, 0.7311, 0.8808, 0.2689, 0.6225 and
// 0.1192; with the bias 0.9, 0.2311, 0.8808, 0.2689, 0.6225 and 0.7192. The sums of the groups of
// two are 1.1311, 1.1497 and 1.3417, so that expert 0, which is the best one, is not eligible.
TEST(Route, ChoosesFromTheGroupsWithTheTwoBestExpertsByTheBias) {
  const Tensor logits = tensor_of({0, 1, 2, -1, 0.5f, -2}, {1, 6});
  const Tensor bias = tensor_of({0.4f, -0.5f, 0, 0, 0, 0.6f}, {6});
  RouteOptions options{.choice = {.chosen = 3, .groups = 3, .groups_chosen = 2}, .sigmoid = true};
  options.scale = 2.5f;
  const auto [weights, experts] = route(logits, options, bias);
  EXPECT_EQ(list(experts), (std::vector<int32_t>{2, 5, 4}));
  // The bias has no effect on the weights: 2.5 * (0.8808, 0.1192, 0.6225) / 1.6225.
  expect_near(weights, {1.3571944f, 0.1836763f, 0.9591293f});
  options.normalise = false;
  expect_near(route(logits, options, bias).weights, {2.2019927f, 0.2980073f, 1.5561483f});
  EXPECT_EQ(list(route(logits, {.choice = {.chosen = 3}, .sigmoid = true}, bias).experts),
            (std::vector<int32_t>{0, 2, 5}));
}

// Compares with sparsemixer() of transformers' Phi-3.5-MoE in evaluation. In the first row, only
// the first two experts are close to the best one; without it, the second and the fourth.
TEST(SparseMixer, MatchesTransformers) {
  const Tensor logits = tensor_of({2, 1.5f, -1, 1.2f, -0.5f, -0.6f, -0.55f, -2}, {2, 4});
  const auto [weights, experts] = sparse_mixer(logits, 2, 0.15f);
  EXPECT_EQ(list(experts), (std::vector<int32_t>{0, 1, 0, 2}));
  expect_near(weights, {0.6224593f, 0.5744425f, 0.3501319f, 0.5124974f});
}

TEST(GroupByExpert, SortsStably) {
  const Groups groups = group_by_expert(integers({3, 0, 0, 1, 3, 1}, {3, 2}), 5);
  EXPECT_EQ(list(groups.rows), (std::vector<int32_t>{0, 1, 1, 2, 0, 2}));
  EXPECT_EQ(list(groups.slots), (std::vector<int32_t>{4, 0, 1, 2, 5, 3}));
  EXPECT_EQ(groups.counts, (std::vector<int64_t>{2, 2, 0, 2, 0}));
}

// Compares with load_balancing_loss_func for one layer, with the mask of a padded batch.
TEST(BalanceLoss, MatchesTransformers) {
  const Tensor experts = integers({1, 2, 2, 3, 2, 3, 0, 1, 2, 3}, {5, 2});
  Tensor logits = router_logits().want_gradient();
  const Tensor loss = balance_loss(softmax(logits), experts);
  expect_near(loss, {1.9979339f});
  backward(loss);
  expect_near(logits.gradient(), {-0.0283302f, -0.0565731f, 0.0842152f,  0.0006881f,  -0.0600000f,
                                  -0.0200000f, 0.0600000f,  0.0200000f,  -0.0051386f, -0.0507498f,
                                  0.0541756f,  0.0017129f,  -0.0597208f, 0.0151590f,  0.0328947f,
                                  0.0116671f,  -0.0568944f, -0.0218685f, 0.0618685f,  0.0168944f});
  expect_near(balance_loss(softmax(router_logits()), experts, integers({1, 0, 1, 1, 0}, {5})),
              {2.1569490f});
}

// Compares with F.cross_entropy(label_smoothing=0.1).
TEST(CrossEntropy, MatchesPyTorchWithSmoothing) {
  Tensor logits = tensor_of({1, -2, 0.5f, 3, 0, 0.25f, -1, 2, 2, 2, 2, -4}, {3, 4}).want_gradient();
  const Tensor loss = cross_entropy(logits, integers({3, -100, 0}, {3}), 0, 0.1f);
  expect_near(loss, {0.8445958f});
  backward(loss);
  expect_near(logits.gradient(), {0.0427769f, -0.0097479f, 0.0210271f, -0.0540561f, 0, 0, 0, 0,
                                  -0.2959709f, 0.1540291f, 0.1540291f, -0.0120872f});
}

Tensor counted(Shape shape, float from_value, float step) {
  std::vector<float> values(static_cast<size_t>(elements(shape)));
  for (size_t i = 0; i < values.size(); ++i)
    values[i] = (static_cast<float>(i) + from_value) * step;
  return tensor_of(values, std::move(shape));
}

// Compares with F.conv1d(stride=2, padding=1) and F.conv2d(stride=2), with weights in PyTorch's
// layout.
TEST(Unfold, GivesAConvolutionWithALinearLayer) {
  const Tensor x = counted({1, 4, 2}, -2, 0.5f), weight = counted({2, 2, 3}, -5, 0.25f);
  expect_near(linear(unfold(x, 3, 2, 1), weight.view({2, 6})), {1.125f, -0.375f, -3.125f, 8.125f});
}

TEST(Patches, GiveAConvolutionWithALinearLayer) {
  const Tensor image = counted({1, 2, 4, 4}, -8, 0.125f), weight = counted({2, 2, 2, 2}, -7, 0.5f);
  expect_near(linear(patches(image, 2), weight.view({2, 8})),
              {4.75f, 14.75f, 1.25f, 19.25f, -9.25f, 32.75f, -12.75f, 37.25f});
}

// Compares with apply_rotary_pos_emb of LLaMA and of GPT-J.
TEST(Rotate, MatchesLlamaAndGptJ) {
  const Tensor x = tensor_of({1, 2, 3, 4}, {1, 1, 1, 4});
  const Tensor cosines = tensor_of({std::cos(0.5f), std::cos(0.1f)}, {1, 2});
  const Tensor sines = tensor_of({std::sin(0.5f), std::sin(0.1f)}, {1, 2});
  expect_near(rotate(x, cosines, sines, Pairing::halves),
              {-0.5606941f, 1.5906746f, 3.1121731f, 4.1796837f});
  expect_near(rotate(x, cosines, sines, Pairing::neighbours),
              {-0.0812685f, 2.2345905f, 2.5856788f, 4.2795172f});
}

// Compares with ACT2FN["tanh", "quick_gelu", "relu2", "sigmoid"].
TEST(Activation, MatchesTransformers) {
  const Tensor x = tensor_of({-2, -0.5f, 0, 0.25f, 3}, {5});
  expect_near(activation(x, Activation::tanh),
              {-0.9640276f, -0.4621172f, 0, 0.2449187f, 0.9950548f});
  expect_near(activation(x, Activation::quick_gelu),
              {-0.0643414f, -0.1496116f, 0, 0.1511997f, 2.9819288f});
  expect_near(activation(x, Activation::relu_squared), {0, 0, 0, 0.0625f, 9});
  expect_near(activation(x, Activation::sigmoid),
              {0.1192029f, 0.3775407f, 0.5f, 0.5621765f, 0.9525741f});
}

// One kernel computes a gated activation, and one its gradients, with the bits of the two ops.
TEST(GatedActivation, EqualsActivationAndProduct) {
  const Tensor x = test::normal({3, 70}, 1), factor = test::normal({3, 70}, 2);
  for (const DType dtype : {DType::f32, DType::bf16}) {
    for (const Activation kind : {Activation::silu, Activation::gelu_tanh, Activation::relu}) {
      const auto run = [&](bool one) {
        Tensor a = convert(x, dtype).want_gradient(), b = convert(factor, dtype).want_gradient();
        const Tensor y = one ? gated_activation(a, b, kind) : multiply(activation(a, kind), b);
        const std::vector<float> values = to_floats(y);
        backward(test::weighted_sum(y));
        return std::vector{values, to_floats(a.gradient()), to_floats(b.gradient())};
      };
      EXPECT_EQ(run(true), run(false)) << name_of(dtype) << " " << static_cast<int>(kind);
    }
  }
}

// Experts without rows receive no gradient, not even zeros.
TEST(GroupedLinear, GivesNoGradientToUnusedExperts) {
  Tensor used = full({2, 3}, 1).want_gradient(), unused = full({2, 3}, 1).want_gradient();
  const Tensor y = grouped_linear(full({4, 3}, 1), {4, 0}, {used, unused}, {});
  backward(test::weighted_sum(y));
  EXPECT_TRUE(used.gradient());
  EXPECT_FALSE(unused.gradient());
}

}  // namespace
}  // namespace fovea
