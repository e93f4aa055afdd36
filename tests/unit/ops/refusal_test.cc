#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <numeric>

#include "ops/ops.h"
#include "ops/packed.h"
#include "support/expect_error.h"
#include "tensor/tape.h"

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

TEST(OpArguments, LinearRefusesMismatchedShapes) {
  const Tensor x = zeros({2, 3});
  refused({"linear", "[4, 5]", "[2, 3]", "expected [N, C]"}, [&] { linear(x, zeros({4, 5})); });
  refused({"linear", "[3]", "expected [N, C]"}, [&] { linear(x, zeros({3})); });
  refused({"linear", "[1, 4, 3]"}, [&] { linear(x, zeros({1, 4, 3})); });
  refused({"linear", "x is []"}, [&] { linear(full({}, 1), zeros({4, 1})); });
  refused({"linear", "bias is [3]", "[4, 3]"}, [&] { linear(x, zeros({4, 3}), zeros({3})); });
  refused({"linear", "bias is [1, 4]"}, [&] { linear(x, zeros({4, 3}), zeros({1, 4})); });
}

TEST(OpArguments, LossOpsRefuseInvalidInputs) {
  refused({"subtract", "[2, 3]", "[3, 2]"}, [] { subtract(zeros({2, 3}), zeros({3, 2})); });
  refused({"sum", "[0]", "at least one"}, [] { sum(zeros({0})); });
  refused({"log_probability", "[2, 3]", "int32"},
          [] { log_probability(zeros({2, 3}), integers({0})); });
  refused({"log_probability", "target 3 at position 1", "less than 3"},
          [] { log_probability(zeros({2, 3}), integers({0, 3})); });
}

TEST(OpArguments, EmbeddingRefusesIdsOutOfRange) {
  const Tensor table = zeros({5, 3});
  refused({"embedding", "fp32", "int32"}, [&] { embedding(zeros({2}), table); });
  refused({"embedding", "[5]", "[V, C]"}, [&] { embedding(integers({0}), zeros({5})); });
  refused({"embedding", "id 5 at position 1", "0 to 4"},
          [&] { embedding(integers({0, 5}), table); });
  refused({"embedding", "id -1 at position 0"}, [&] { embedding(integers({-1}), table); });
}

TEST(OpArguments, NormsRefuseMismatchedWeights) {
  const Tensor x = zeros({2, 3}), weight = zeros({3});
  const auto norm = [&](const Tensor& w, const Tensor& b) {
    return layer_norm(x, w, b, 1e-5f, DType::f32);
  };
  refused({"layer_norm", "weight is [2]", "expected [3]"}, [&] { norm(zeros({2}), {}); });
  refused({"layer_norm", "weight is [1, 3]"}, [&] { norm(zeros({1, 3}), {}); });
  refused({"layer_norm", "bias is [4]", "expected [3]"}, [&] { norm(weight, zeros({4})); });
  refused({"rms_norm", "weight is [2]", "expected [3]"},
          [&] { rms_norm(x, zeros({2}), 1e-5f, DType::f32); });
}

TEST(OpArguments, AttentionRefusesMismatchedShapes) {
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
  refused({"attention", "differ only in the last axis"},
          [&] { attention(q, zeros({2, 5, 4, 8}), zeros({2, 6, 4, 8}), {}); });
  AttentionOptions options;
  options.keys = 6;
  refused({"attention", "6 keys; expected at most 5"}, [&] { with({2, 5, 4, 8}, options); });
  refused({"attention", "6 keys; expected at most 5"}, [&] { weights({2, 5, 4, 8}, options); });
  options = {};
  options.mask.valid = {{0, 5}};
  refused({"attention", "mask has 1 rows", "expected 2"}, [&] { with({2, 5, 4, 8}, options); });
  for (const auto& [starts, what] : {std::pair{DocumentStarts{{0}}, "documents for 1 rows"},
                                     {{{0}, {}}, "documents begin at ;"},
                                     {{{0}, {1}}, "documents begin at 1;"},
                                     {{{0}, {0, 2, 2}}, "documents begin at 0, 2, 2;"}}) {
    options = {};
    options.mask.documents = std::make_shared<const DocumentStarts>(starts);
    refused({"attention", what}, [&] { with({2, 5, 4, 8}, options); });
  }
  options = {};
  options.dropout.probability = 1;
  refused({"attention", "dropout 1"}, [&] { with({2, 5, 4, 8}, options); });
  options = {};
  options.softcap = -1;
  refused({"attention", "softcap -1"}, [&] { with({2, 5, 4, 8}, options); });
  options = {};
  options.mask.global = -2;
  refused({"attention", "global -2"}, [&] { weights({2, 5, 4, 8}, options); });
  for (const Tensor& bias :
       {zeros({4, 8}), zeros({3, 7}), zeros({7}), zeros({4, 7}, DType::bf16)}) {
    options = {};
    options.bias = bias;
    refused({"attention", "bias is", describe(bias.shape()), "fp32 [4, 7]"},
            [&] { with({2, 5, 4, 8}, options); });
    refused({"attention", "bias is"}, [&] { weights({2, 5, 4, 8}, options); });
  }
}

TEST(OpArguments, TermsOfDistancesRefuseMismatchedShapes) {
  const Tensor q = zeros({2, 3, 4, 8});
  for (const Shape& k : {Shape{3, 5, 4, 8}, Shape{2, 5, 3, 8}, Shape{2, 5, 4, 7}, Shape{5, 4, 8}})
    refused({"head_products", describe(k), "[2, 3, 4, 8]"}, [&] { head_products(q, zeros(k)); });
  const Tensor rows = tensor_of(std::vector<int32_t>{0, 1, 2, 3, 4, 5, 6}, {7});
  refused({"distance_terms", "row 6; expected 0 to 5"},
          [&] { distance_terms(zeros({2, 4, 3, 6}), {}, rows, 1); });
  refused({"distance_terms", "of_keys is [2, 4, 4, 7]", "7 rows"},
          [&] { distance_terms(zeros({2, 4, 3, 7}), zeros({2, 4, 4, 7}), rows, 1); });
  AttentionOptions options;
  options.terms = zeros({2, 4, 3, 6});
  refused({"attention", "the terms are [2, 4, 3, 6]; expected [2, 4, 3, 5]"},
          [&] { attention(q, zeros({2, 5, 4, 8}), zeros({2, 5, 4, 8}), options); });
}

TEST(OpArguments, ElementwiseOpsRefuseMismatchedShapes) {
  refused({"add", "[2, 3]", "[3, 2]"}, [] { add(zeros({2, 3}), zeros({3, 2})); });
  refused({"add", "[3]", "[1]"}, [] { add(zeros({3}), zeros({1})); });
  refused({"multiply", "[2, 3]", "[6]"}, [] { multiply(zeros({2, 3}), zeros({6})); });
}

TEST(OpArguments, DropoutRefusesInvalidProbabilities) {
  for (const float probability : {-0.1f, 1.0f, 2.0f, NAN}) {
    refused({"dropout", "expected at least 0 and below 1"},
            [&] { dropout(zeros({3}), {.probability = probability}); });
  }
}

TEST(OpArguments, CrossEntropyRefusesInvalidTargets) {
  const Tensor logits = zeros({2, 3});
  refused({"cross_entropy", "int32 [1]", "[2, 3]"}, [&] { cross_entropy(logits, integers({0})); });
  refused({"cross_entropy", "fp32 [2]"}, [&] { cross_entropy(logits, zeros({2})); });
  refused({"cross_entropy", "target 3 at position 1", "less than 3"},
          [&] { cross_entropy(logits, integers({-100, 3})); });
}

TEST(OpArguments, CrossEntropyRefusesInvalidSmoothing) {
  for (const float smoothing : {-0.1f, 1.1f, NAN}) {
    refused({"cross_entropy", "smoothing", "expected 0 to 1"},
            [&] { cross_entropy(zeros({1, 3}), integers({0}), 0, smoothing); });
  }
}

TEST(OpArguments, KlDivergenceRefusesInvalidInputs) {
  const Tensor logits = zeros({2, 5}), log_p = zeros({2, 3});
  const auto classes = [](const std::vector<int32_t>& ids, int64_t rows) {
    return integers(ids).view({rows, std::ssize(ids) / rows});
  };
  const Tensor good = classes({0, 4, 1, 2}, 2);
  refused({"kl_divergence", "[1, 4]", "[R, k]"},
          [&] { kl_divergence(logits, {classes({0, 1, 2, 3}, 1), log_p}); });
  refused({"kl_divergence", "[2, 4]"}, [&] { kl_divergence(logits, {good, zeros({2, 4})}); });
  refused({"kl_divergence", "class 1 of row 1 is 5"},
          [&] { kl_divergence(logits, {classes({0, 4, 1, 5}, 2), log_p}); });
  refused({"kl_divergence", "class 1 of row 0 is 3", "ascending"},
          [&] { kl_divergence(logits, {classes({3, 3, 1, 2}, 2), log_p}); });
  for (const float temperature : {0.0f, -1.0f, NAN})
    refused({"kl_divergence", "temperature"},
            [&] { kl_divergence(logits, {good, log_p}, 0, temperature); });
  for (const float share : {-0.1f, 1.1f}) {
    const Distillation distillation{{good, log_p}, 1, share};
    refused({"cross_entropy", "share"},
            [&] { cross_entropy(logits, integers({0, 1}), {.distillation = &distillation}); });
  }
}

TEST(OpArguments, LinearCrossEntropyRefusesInvalidInputs) {
  const Tensor x = zeros({2, 4}), weight = zeros({3, 4});
  const auto with = [](const Tensor& a, const Tensor& b, const Tensor& bias, const Tensor& targets,
                       const LossOptions& options = {}) {
    linear_cross_entropy(a, b, bias, targets, options);
  };
  const Tensor targets = integers({0, 1});
  refused({"linear_cross_entropy", "[3, 4]", "[2, 5]"},
          [&] { with(zeros({2, 5}), weight, {}, targets); });
  refused({"linear_cross_entropy", "bias is [4]"}, [&] { with(x, weight, zeros({4}), targets); });
  refused({"linear_cross_entropy", "x is [2, 4]", "[1]"},
          [&] { with(x, weight, {}, integers({0})); });
  refused({"linear_cross_entropy", "target 3"}, [&] { with(x, weight, {}, integers({0, 3})); });
  refused({"linear_cross_entropy", "smoothing"},
          [&] { with(x, weight, {}, targets, {.smoothing = 2}); });
  refused({"linear_cross_entropy", "softcap"},
          [&] { with(x, weight, {}, targets, {.softcap = -1}); });
}

TEST(OpArguments, LinearLogProbabilityRefusesInvalidInputs) {
  const Tensor x = zeros({2, 4}), weight = zeros({3, 4}), targets = integers({0, 1});
  refused({"linear_log_probability", "[3, 4]", "[2, 5]"},
          [&] { linear_log_probability(zeros({2, 5}), weight, {}, targets); });
  refused({"linear_log_probability", "bias is [4]"},
          [&] { linear_log_probability(x, weight, zeros({4}), targets); });
  refused({"linear_log_probability", "x is [2, 4]", "[1]"},
          [&] { linear_log_probability(x, weight, {}, integers({0})); });
  refused({"linear_log_probability", "target 3"},
          [&] { linear_log_probability(x, weight, {}, integers({0, 3})); });
}

TEST(OpArguments, SegmentSumsRefuseOtherCounts) {
  refused({"segment_sums", "[4]", "3"}, [] { segment_sums(zeros({4}), {1, 2}); });
  refused({"segment_sums"}, [] { segment_sums(zeros({0}), {}); });
}

TEST(OpArguments, SoftcapRefusesNonPositiveCaps) {
  for (const float cap : {0.0f, -1.0f, NAN, INFINITY})
    refused({"softcap", "expected a positive number"}, [&] { softcap(zeros({2}), cap); });
}

TEST(OpArguments, ClipAndMinimumRefuseInvalidInputs) {
  refused({"clip", "1 to -1", "ascending limits"}, [&] { clip(zeros({2}), 1, -1); });
  refused({"clip", "ascending limits"}, [&] { clip(zeros({2}), NAN, 1); });
  refused({"minimum", "equal shapes"}, [&] { minimum(zeros({2}), zeros({3})); });
}

TEST(OpArguments, RotateRefusesMismatchedAngles) {
  const Tensor x = zeros({2, 3, 2, 5}), angles = zeros({3, 2});
  const auto rotated = [&](const Tensor& c, const Tensor& s) { rotate(x, c, s, Pairing::halves); };
  refused({"rotate", "[2, 5]", "[B, T, H, D]"},
          [&] { rotate(zeros({2, 5}), angles, angles, Pairing::halves); });
  refused({"rotate", "[3, 2]", "[3, 1]", "twice"}, [&] { rotated(angles, zeros({3, 1})); });
  refused({"rotate", "bf16", "fp32"}, [&] { rotated(zeros({3, 2}, DType::bf16), angles); });
  refused({"rotate", "[2, 2]", "[2, 3, 2, 5]"}, [&] { rotated(zeros({2, 2}), zeros({2, 2})); });
  refused({"rotate", "[3, 3]", "at most D/2"}, [&] { rotated(zeros({3, 3}), zeros({3, 3})); });
}

TEST(OpArguments, UnfoldRefusesInvalidWindows) {
  const Tensor x = zeros({1, 3, 2});
  refused({"unfold", "[3, 2]"}, [&] { unfold(zeros({3, 2}), 1, 1, 0); });
  refused({"unfold", "kernel 6"}, [&] { unfold(x, 6, 1, 1); });
  refused({"unfold", "kernel 0"}, [&] { unfold(x, 0, 1, 0); });
  refused({"unfold", "stride 0"}, [&] { unfold(x, 1, 0, 0); });
  refused({"unfold", "padding -1"}, [&] { unfold(x, 1, 1, -1); });
  refused({"unfold"}, [&] { unfold(x, 1, 1, INT64_MAX); });
  refused({"patches", "squares of 2", "[1, 1, 4, 3]"}, [&] { patches(zeros({1, 1, 4, 3}), 2); });
  refused({"patches", "squares of 0"}, [&] { patches(zeros({1, 1, 4, 4}), 0); });
  refused({"patches", "[4, 4]"}, [&] { patches(zeros({4, 4}), 2); });
}

TEST(OpArguments, ConcatRefusesMismatchedShapes) {
  const Tensor second = zeros({3, 4, 5});
  refused({"concat_tokens", "[1, 1, 4]"}, [&] { concat_tokens(zeros({1, 1, 4}), second); });
  refused({"concat_tokens", "[2, 1, 5]"}, [&] { concat_tokens(zeros({2, 1, 5}), second); });
  refused({"concat_tokens", "[1, 5]"}, [&] { concat_tokens(zeros({1, 5}), second); });
}

TEST(OpArguments, RoutingOpsRefuseInvalidChoices) {
  const Tensor logits = zeros({2, 3}), choices = integers({0, 2, 1, 1}).view({2, 2});
  refused({"route", "4 choices", "[2, 3]"}, [&] { route(logits, {.choice = {.chosen = 4}}); });
  refused({"route", "0 choices"}, [&] { route(logits, {.choice = {.chosen = 0}}); });
  refused({"route", "[3]"}, [&] { route(zeros({3}), {}); });
  refused({"route", "1 choices in 1 of 2 groups of 3 experts"},
          [&] { route(logits, {.choice = {.chosen = 1, .groups = 2}}); });
  refused({"route", "2 choices in 1 of 3 groups of 3 experts"},
          [&] { route(logits, {.choice = {.chosen = 2, .groups = 3}}); });
  refused({"route", "bias is [2]", "expected [E]"}, [&] { route(logits, {}, zeros({2})); });
  refused({"pick", "[2, 3]", "fp32 [2, 1]"}, [&] { pick(logits, zeros({2, 1})); });
  refused({"pick", "column 3 at position 1", "0 to 2"},
          [&] { pick(logits, integers({0, 3}).view({2, 1})); });
  refused({"group_by_expert", "expert 2 at position 1", "0 to 1"},
          [&] { group_by_expert(choices, 2); });
  refused({"group_by_expert", "int32 [4]"}, [&] { group_by_expert(choices.view({4}), 3); });
  refused({"balance_loss", "expert 2 at position 1"},
          [&] { balance_loss(zeros({2, 2}), choices); });
  refused({"balance_loss", "int32 [2, 2]"}, [&] { balance_loss(zeros({3, 3}), choices); });
  refused({"balance_loss", "int32 [3]"},
          [&] { balance_loss(logits, choices, integers({1, 1, 1})); });
}

TEST(OpArguments, DynamicTanhRefusesMismatchedParameters) {
  const Tensor x = zeros({2, 3}), one = zeros({1}), row = zeros({3});
  refused({"dynamic_tanh", "alpha is [3]", "[1] and [3]"},
          [&] { dynamic_tanh(x, row, row, row, DType::f32); });
  refused({"dynamic_tanh", "weight is [2]"},
          [&] { dynamic_tanh(x, one, zeros({2}), {}, DType::f32); });
  refused({"dynamic_tanh", "bias is [1]"}, [&] { dynamic_tanh(x, one, row, one, DType::f32); });
}

TEST(OpArguments, XieluRefusesListsOfNumbers) {
  const Tensor x = zeros({2, 3}), one = zeros({1});
  refused({"xielu", "a number is [2]", "[1]"}, [&] { xielu(x, one, zeros({2}), one, one); });
}

TEST(OpArguments, SparseMixerRefusesMoreChoicesThanExperts) {
  refused({"sparse_mixer", "4 choices", "[2, 3]"}, [] { sparse_mixer(zeros({2, 3}), 4, 0.1f); });
}

TEST(OpArguments, ScaleColumnsRefusesMismatchedFactors) {
  const Tensor x = zeros({2, 3});
  refused({"scale_columns", "factors are [2]", "[3]"}, [&] { scale_columns(x, zeros({2})); });
  refused({"scale_columns", "bias is [1]"}, [&] { scale_columns(x, zeros({3}), zeros({1})); });
  refused({"inverse_row_lengths", "[3]"}, [&] { inverse_row_lengths(zeros({3})); });
}

TEST(OpArguments, GroupedLinearRefusesMismatchedGroups) {
  const Tensor x = zeros({5, 3}), weight = zeros({4, 3}), bias = zeros({4});
  refused({"grouped_linear", "1 counts, 2 weights"},
          [&] { grouped_linear(x, {5}, {weight, weight}, {}); });
  refused({"grouped_linear", "1 biases"},
          [&] { grouped_linear(x, {2, 3}, {weight, weight}, {bias}); });
  refused({"grouped_linear", "4 rows are in groups", "[5, 3]"},
          [&] { grouped_linear(x, {4}, {weight}, {}); });
  refused({"grouped_linear", "-1 rows"}, [&] { grouped_linear(x, {6, -1}, {weight, weight}, {}); });
  refused({"grouped_linear", "[4, 2]"}, [&] { grouped_linear(x, {5}, {zeros({4, 2})}, {}); });
  refused({"grouped_linear", "[4, 3] and [5, 3]"},
          [&] { grouped_linear(x, {5, 0}, {weight, zeros({5, 3})}, {}); });
  refused({"grouped_linear", "a bias is [3]"},
          [&] { grouped_linear(x, {5}, {weight}, {zeros({3})}); });
}

TEST(OpArguments, PackedGroupedLinearRefusesMismatchedGroups) {
  const auto packed = [](Shape shape) {
    return PackedWeight(zeros(std::move(shape)), WeightFormat::int8, 32);
  };
  const Tensor x = zeros({5, 3});
  const PackedWeight weight = packed({4, 3});
  refused({"grouped_linear", "2 counts, 1 weights"},
          [&] { grouped_linear(x, {2, 3}, std::vector{weight}, {}); });
  refused({"grouped_linear", "0 weights"},
          [&] { grouped_linear(x, {}, std::vector<PackedWeight>(), {}); });
  refused({"grouped_linear", "4 rows are in groups", "[5, 3]"},
          [&] { grouped_linear(x, {4}, std::vector{weight}, {}); });
  refused({"grouped_linear", "[4, 2]"},
          [&] { grouped_linear(x, {5}, std::vector{packed({4, 2})}, {}); });
  refused({"grouped_linear", "[4, 3] and [5, 3]"},
          [&] { grouped_linear(x, {5, 0}, std::vector{weight, packed({5, 3})}, {}); });
  refused({"grouped_linear", "a bias is [3]"},
          [&] { grouped_linear(x, {5}, std::vector{weight}, {zeros({3})}); });
  refused({"grouped_linear", "x is [15]"},
          [&] { grouped_linear(x.view({15}), {15}, std::vector{weight}, {}); });
}

TEST(OpArguments, PackedEmbeddingRefusesInvalidInputs) {
  const PackedWeight table(zeros({5, 3}), WeightFormat::int8, 32);
  refused({"embedding", "fp32", "int32"}, [&] { embedding(zeros({2}), table); });
  refused({"embedding", "empty", "[V, C]"}, [&] { embedding(integers({0}), PackedWeight()); });
  refused({"embedding", "id 5 at position 0", "0 to 4"}, [&] { embedding(integers({5}), table); });
}

TEST(OpArguments, CombineRefusesInvalidPlaces) {
  const Tensor z = zeros({4, 3}), weights = zeros({2, 2});
  const auto combined = [&](std::vector<int32_t> slots) {
    combine(z, integers(std::move(slots)).view({2, 2}), weights);
  };
  refused({"combine", "slots[3] is 1", "each once"}, [&] { combined({0, 2, 1, 1}); });
  refused({"combine", "slots[0] is 4", "0 to 3"}, [&] { combined({4, 2, 1, 0}); });
  refused({"combine", "[4, 1]"}, [&] { combine(z, integers({0, 1, 2, 3}).view({4, 1}), weights); });
}

// Kernels compute with floating-point numbers; passing another dtype is a bug in the library.
TEST(OpArguments, RefuseIntegerTensors) {
  const Tensor x = integers({1, 2});
  for (const auto& op : std::vector<std::function<void()>>{
           [&] { activation(x, Activation::relu); }, [&] { add(x, x); }, [&] { multiply(x, x); },
           [&] { cast(x, DType::f32); }, [&] { cast(x, DType::f64); }}) {
    expect_error(ErrorKind::Internal, {"the dtype is int32"}, op);
  }
}

TEST(OpEdgeCases, EmptyInputsGiveEmptyOutputs) {
  Tensor x = zeros({0, 3});
  x.want_gradient();
  EXPECT_EQ(linear(x, zeros({2, 3})).shape(), (Shape{0, 2}));
  EXPECT_EQ(activation(x, Activation::gelu).size(), 0);
  EXPECT_EQ(layer_norm(x, zeros({3}), {}, 1e-5f, DType::f32).size(), 0);
  EXPECT_EQ(to_floats(cross_entropy(x, integers({}))), std::vector<float>{0});
  // A sum without terms is zero; the bias is still added.
  EXPECT_EQ(to_floats(linear(zeros({2, 0}), zeros({3, 0}))), std::vector<float>(6, 0));
  EXPECT_EQ(to_floats(linear(zeros({2, 0}), zeros({1, 0}), full({1}, 4))),
            std::vector<float>(2, 4));
  clear_tape();
}

TEST(OpEdgeCases, ReturnTheInputIfNothingChanges) {
  const Tensor x = zeros({2, 3});
  EXPECT_EQ(cast(x, DType::f32).data(), x.data());
  EXPECT_EQ(dropout(x, {}).data(), x.data());
}

TEST(Dropout, DependsOnlyOnSeedSubstreamAndStep) {
  const Tensor x = full({1000}, 1);
  const Dropout options{.probability = 0.5f, .seed = 1, .substream = 2, .step = 3};
  const std::vector<float> first = to_floats(dropout(x, options));
  EXPECT_EQ(to_floats(dropout(x, options)), first);
  EXPECT_NEAR(std::accumulate(first.begin(), first.end(), 0.0), 1000, 150);
  for (const float value : first) EXPECT_TRUE(value == 0 || value == 2);
  Dropout seed = options, substream = options, step = options;
  seed.seed = 2, substream.substream = 3, step.step = 4;
  for (const Dropout& other : {seed, substream, step})
    EXPECT_NE(to_floats(dropout(x, other)), first);
}

}  // namespace
}  // namespace fovea
