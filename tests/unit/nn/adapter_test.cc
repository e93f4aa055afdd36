#include <gtest/gtest.h>

#include <algorithm>
#include <array>

#include "nn/packed_linear.h"
#include "support/expect_error.h"
#include "support/gradient_check.h"
#include "support/random_parameters.h"
#include "tensor/tape.h"

namespace fovea::model {
namespace {

Linear layer_of(int64_t in, int64_t out) {
  Linear layer(in, out, true);
  test::randomise(layer, 3);
  layer.weight.trainable = layer.bias.trainable = false;
  return layer;
}

Tensor numbers(Shape shape, uint64_t seed) {
  return convert(test::normal(std::move(shape), seed), DType::f32);
}

constexpr uint64_t kSeed = 9;

void adapt(Linear& layer, const AdapterShape& shape) {
  add_adapter(layer, shape);
  initialise_adapter(layer, kSeed);
}

TEST(Adapters, InitiallyHaveNoEffect) {
  Linear layer = layer_of(7, 5);
  const Tensor x = numbers({3, 7}, 1);
  const std::vector<float> before = to_floats(layer(x));
  adapt(layer, {.rank = 2, .scale = 2});
  EXPECT_EQ(to_floats(layer(x)), before);
  std::vector<std::string> names;
  const auto list = [&](const std::string& name, Parameter&) { names.push_back(name); };
  layer.each(list, "q");
  EXPECT_EQ(names,
            (std::vector<std::string>{"q.weight", "q.bias", "q.adapter.down", "q.adapter.up"}));
}

// Expects that gradient descent learns a target that differs from the layer by a matrix of rank 1.
void expect_learning(bool packed) {
  Linear layer = layer_of(7, 5);
  const Tensor x = numbers({16, 7}, 1), bias = layer.bias.value,
               shift = fovea::linear(fovea::linear(x, numbers({1, 7}, 5)), numbers({5, 1}, 6)),
               target = add(layer(x), shift);
  const std::vector<float> weight = to_floats(layer.weight.value), bias_before = to_floats(bias);
  if (packed) {
    layer.weight.packed = PackedWeight(layer.weight.value, WeightFormat::f32, 0);
    layer.weight.value = {};
  }
  adapt(layer, {.rank = 2, .scale = 1});
  double first = 0, last = 0;
  for (int step = 0; step < 300; ++step) {
    for (Parameter* p : {&layer.adapter.down, &layer.adapter.up}) p->value.want_gradient();
    const Tensor error = subtract(layer(x), target), loss = mean(multiply(error, error));
    last = static_cast<double>(to_floats(loss)[0]);
    if (step == 0) first = last;
    backward(loss);
    for (Parameter* p : {&layer.adapter.down, &layer.adapter.up}) {
      const Tensor gradient = p->value.gradient();
      for (int64_t i = 0; i < gradient.size(); ++i)
        p->value.data_as<float>()[i] -= 0.1f * gradient.data_as<float>()[i];
      p->value.clear_gradient();
    }
  }
  EXPECT_LT(last, 0.05 * first);
  EXPECT_EQ(to_floats(packed ? layer.weight.packed.floats() : layer.weight.value), weight);
  EXPECT_EQ(to_floats(bias), bias_before);
}

TEST(Adapters, LearnOnFrozenWeights) { expect_learning(false); }
TEST(Adapters, LearnOnPackedWeights) { expect_learning(true); }

TEST(Adapters, DoraInitiallyHasNoEffect) {
  Linear layer = layer_of(7, 5);
  const Tensor x = numbers({3, 7}, 1);
  const std::vector<float> before = to_floats(layer(x));
  adapt(layer, {.rank = 2, .scale = 2, .dora = true});
  const std::vector<float> after = to_floats(layer(x));
  for (size_t i = 0; i < before.size(); ++i) EXPECT_NEAR(after[i], before[i], 1e-6) << i;
  EXPECT_EQ(layer.adapter.magnitude.shape, Shape{5});
}

TEST(Adapters, StartWithUniformNumbersOfTheRange) {
  Linear layer = layer_of(100, 3), other = layer;
  adapt(layer, {.rank = 8});
  adapt(other, {.rank = 8, .index = 1});
  const std::vector<float> down = to_floats(layer.adapter.down.value);
  const auto [least, most] = std::minmax_element(down.begin(), down.end());
  EXPECT_GE(*least, -0.1f);
  EXPECT_LT(*least, -0.09f);
  EXPECT_LT(*most, 0.1f);
  EXPECT_GT(*most, 0.09f);
  EXPECT_EQ(to_floats(layer.adapter.up.value), std::vector<float>(24));
  EXPECT_NE(down, to_floats(other.adapter.down.value));
}

TEST(Adapters, RefuseARankOfZero) {
  Linear layer = layer_of(7, 5), none;
  expect_error(ErrorKind::InvalidArgument, {"adapter", "rank 0"},
               [&] { add_adapter(layer, {.rank = 0}); });
  expect_error(ErrorKind::InvalidArgument, {"adapter", "rank 1"},
               [&] { add_adapter(none, {.rank = 1}); });
}

// A layer in double precision with an adapter whose values are inputs: x, weight, bias, A, B and,
// for DoRA, m.
Tensor through(const std::vector<Tensor>& in, float scale, bool dora, const Pass& pass = {}) {
  Linear layer(in[0].dim(-1), in[1].dim(0), true);
  layer.weight.value = in[1];
  layer.bias.value = in[2];
  add_adapter(layer, {.rank = in[3].dim(0), .scale = scale, .dropout = 0.4f, .dora = dora});
  layer.adapter.down.value = in[3];
  layer.adapter.up.value = in[4];
  if (dora) layer.adapter.magnitude.value = in[5];
  return layer(in[0], pass);
}

std::vector<Tensor> inputs_of(int64_t rows, int64_t in, int64_t out, int64_t rank) {
  return {test::normal({rows, in}, 1), test::normal({out, in}, 2),   test::normal({out}, 3),
          test::normal({rank, in}, 4), test::normal({out, rank}, 5), test::normal({out}, 6)};
}

constexpr std::array<std::array<int64_t, 4>, 4> kSizes = {
    {{1, 1, 1, 1}, {3, 7, 5, 2}, {5, 3, 11, 4}, {2, 13, 2, 13}}};

TEST(Adapters, HaveTheGradientsOfTheFormula) {
  for (const auto& [rows, in, out, rank] : kSizes) {
    std::vector<Tensor> inputs = inputs_of(rows, in, out, rank);
    inputs.pop_back();
    test::check_gradients(inputs, [](auto& all) { return through(all, 0.75f, false); });
    Pass training;
    training.training = true;
    training.dropout.seed = 3;
    test::check_gradients(inputs, [&](auto& all) { return through(all, 0.75f, false, training); });
  }
}

// The lengths of the rows count as constants: the gradients are those of the same layer with the
// factors m / length of the first call.
TEST(Adapters, HaveTheGradientsOfDora) {
  constexpr float kScale = 0.75f;
  for (const auto& [rows, in, out, rank] : kSizes) {
    std::vector<Tensor> one = inputs_of(rows, in, out, rank),
                        other = inputs_of(rows, in, out, rank);
    const auto dora = [](auto& all) { return through(all, kScale, true); };
    Tensor product = empty({out, in}, DType::f64);
    kernels(product).gemm(product, one[4], one[3], {}, {out, in, rank, false, false});
    const Tensor inverse = inverse_row_lengths(add(one[1], scale(product, kScale)));
    const auto with_constants = [&](auto& all) {
      const Tensor change = scale(fovea::linear(fovea::linear(all[0], all[3]), all[4]), kScale);
      return scale_columns(add(fovea::linear(all[0], all[1]), change), multiply(all[5], inverse),
                           all[2]);
    };
    test::check_gradients(inputs_of(rows, in, out, rank), with_constants);
    const std::vector<Tensor> found = test::gradients(one, dora),
                              expected = test::gradients(other, with_constants);
    for (size_t n = 0; n < found.size(); ++n)
      for (int64_t i = 0; i < found[n].size(); ++i)
        EXPECT_NEAR(test::at(found[n], i), test::at(expected[n], i), 1e-12) << n << " " << i;
  }
}

TEST(Adapters, UseDropoutInTrainingOnly) {
  const std::vector<Tensor> in = inputs_of(4, 30, 5, 2);
  Pass pass;
  pass.dropout.seed = 3;
  const auto floats = [&](const Pass& given) {
    return to_floats(convert(through(in, 1, false, given), DType::f32));
  };
  const std::vector<float> without = floats(pass);
  EXPECT_EQ(without, floats({}));
  pass.training = true;
  EXPECT_NE(without, floats(pass));
  EXPECT_EQ(floats(pass), floats(pass));
}

// Expects that the layer with its adapter, and the layer with the merged matrix, agree.
void expect_merged(const Linear& layer) {
  const Tensor x = numbers({3, 7}, 1);
  Linear merged = layer;
  merged.weight.value = layer.adapter.merged(layer.weight);
  merged.weight.packed = {};
  merged.adapter = {};
  const std::vector<float> expected = to_floats(layer(x)), found = to_floats(merged(x));
  for (size_t i = 0; i < found.size(); ++i) EXPECT_NEAR(found[i], expected[i], 1e-5) << i;
}

TEST(Adapters, AreMerged) {
  for (const bool packed : {false, true}) {
    for (const bool dora : {false, true}) {
      for (const bool fixed : {false, true}) {
        Linear layer = layer_of(7, 5);
        adapt(layer, {.rank = 2, .scale = 0.5f, .dora = dora});
        layer.adapter.up.value = numbers({5, 2}, 5);
        if (fixed) layer.adapter.scale = 1;
        layer.adapter.fixed = fixed;
        if (packed) {
          layer.weight.packed = PackedWeight(layer.weight.value, WeightFormat::f32, 0);
          layer.weight.value = {};
        }
        expect_merged(layer);
        const Tensor x = numbers({3, 7}, 1);
        const auto [y, z] = all_of(x, Pass(), layer, layer);
        EXPECT_EQ(to_floats(y), to_floats(layer(x)));
        EXPECT_EQ(to_floats(z), to_floats(y));
      }
    }
  }
}

TEST(PackedWeights, PassGradientsToTheirInput) {
  Linear whole = layer_of(7, 5), packed = whole;
  packed.weight.packed = PackedWeight(whole.weight.value, WeightFormat::f32, 0);
  packed.weight.value = {};
  const auto gradients = [](const Linear& layer) {
    Tensor x = numbers({3, 7}, 1);
    x.want_gradient();
    const auto [y, z] = all_of(x, Pass(), layer, layer);
    backward(sum(add(multiply(y, y), z)));
    return to_floats(x.gradient());
  };
  const std::vector<float> expected = gradients(whole), found = gradients(packed);
  ASSERT_EQ(found.size(), expected.size());
  for (size_t i = 0; i < found.size(); ++i) EXPECT_NEAR(found[i], expected[i], 1e-5) << i;
}

}  // namespace
}  // namespace fovea::model
