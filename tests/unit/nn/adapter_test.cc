#include <gtest/gtest.h>

#include "nn/linear.h"
#include "support/gradient_check.h"
#include "support/random_parameters.h"
#include "tensor/tape.h"

namespace fovea {
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

TEST(Adapters, InitiallyHaveNoEffect) {
  Linear layer = layer_of(7, 5);
  const Tensor x = numbers({3, 7}, 1);
  const std::vector<float> before = to_floats(layer(x));
  add_adapter(layer, 2, 4, 9);
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
               shift = linear(linear(x, numbers({1, 7}, 5)), numbers({5, 1}, 6)),
               target = add(layer(x), shift);
  const std::vector<float> weight = to_floats(layer.weight.value), bias_before = to_floats(bias);
  if (packed) {
    layer.weight.packed = PackedWeight(layer.weight.value, WeightFormat::f32, 0);
    layer.weight.value = {};
  }
  add_adapter(layer, 2, 2, 9);
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

TEST(PackedWeights, PassGradientsToTheirInput) {
  Linear whole = layer_of(7, 5), packed = whole;
  packed.weight.packed = PackedWeight(whole.weight.value, WeightFormat::f32, 0);
  packed.weight.value = {};
  const auto gradients = [](const Linear& layer) {
    Tensor x = numbers({3, 7}, 1);
    x.want_gradient();
    const auto [y, z] = all_of(x, layer, layer);
    backward(sum(add(multiply(y, y), z)));
    return to_floats(x.gradient());
  };
  const std::vector<float> expected = gradients(whole), found = gradients(packed);
  ASSERT_EQ(found.size(), expected.size());
  for (size_t i = 0; i < found.size(); ++i) EXPECT_NEAR(found[i], expected[i], 1e-5) << i;
}

}  // namespace
}  // namespace fovea
