// Models with frozen packed weights have the bits of models with the weights that these represent.

#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "kernels/isa.h"
#include "support/gradient_check.h"
#include "support/mixtures.h"
#include "support/small_spec.h"
#include "tensor/tape.h"
#include "transformer/pack.h"

namespace fovea::model {
namespace {

struct Result {
  double loss = 0;
  std::map<std::string, std::vector<float>> gradients;
  bool operator==(const Result&) const = default;
};

Tensor loss_of(const Transformer& model, DType compute) {
  Pass pass = test::causal_pass(compute);
  pass.training = true;
  pass.dropout = {.seed = 3, .step = 4};
  const Tensor ids = test::some_ids({2, 5}, 7), labels = test::some_ids({2, 5}, 7, 6);
  return model.loss(model.hidden(ids, pass), {}, labels);
}

// Returns the loss, and the gradients of the trainable parameters.
Result result_of(Transformer& model, DType compute) {
  model.each([](const std::string&, Parameter& p) {
    if (p.trainable) p.value.want_gradient();
  });
  const Tensor loss = loss_of(model, compute);
  Result result = {number_of(loss), {}};
  backward(loss);
  model.each([&](const std::string& name, Parameter& p) {
    if (!p.trainable) return;
    const Tensor gradient = p.value.gradient();
    result.gradients[name] = gradient ? to_floats(gradient) : std::vector<float>();
    p.value.clear_gradient();
  });
  return result;
}

// Adds adapters that change the output to the matrices of attention and of the feed-forward layer.
void adapt(Transformer& model) {
  uint64_t seed = 40;
  for (Block& block : model.decoder.blocks) {
    for (Linear* layer :
         {&std::get<Attention>(block.mixer).query, &std::get<Attention>(block.mixer).key,
          &std::get<Attention>(block.mixer).value, &std::get<Attention>(block.mixer).output,
          &block.ffn->gate, &block.ffn->up, &block.ffn->down}) {
      if (!layer->weight.present()) continue;
      add_adapter(*layer, {.rank = 2, .scale = 2});
      initialise_adapter(*layer, ++seed);
      layer->adapter.up.value =
          convert(test::normal(layer->adapter.up.shape, ++seed, 0.1), DType::f32);
    }
  }
}

// Returns two equal models whose matrices are frozen: packed, and as fp32.
std::pair<Transformer, Transformer> frozen_pair(const Spec& spec, WeightFormat format) {
  Transformer packed = test::made(spec), dense = test::made(spec);
  pack(packed, format);
  std::map<std::string, Tensor> values;
  packed.each([&](const std::string& name, Parameter& p) {
    if (p.packed) values[name] = p.packed.floats();
  });
  dense.each([&](const std::string& name, Parameter& p) {
    if (!values.contains(name)) return;
    p.value = values[name];
    p.trainable = false;
  });
  freeze_packed(packed);
  return {packed, dense};
}

class FrozenWeights : public testing::Test {
 protected:
  void TearDown() override { use_isa("auto"); }
};

TEST_F(FrozenWeights, GiveTheGradientsOfDenseWeightsInAllMixtures) {
  const Spec tiny = test::small_decoder({.vocabulary = 7, .context = 6, .width = 6});
  for (const auto& [name, spec] : test::mixtures(tiny)) {
    for (const WeightFormat format : {WeightFormat::int4, WeightFormat::bf16}) {
      auto [packed, dense] = frozen_pair(spec, format);
      for (const DType compute : {DType::f32, DType::bf16}) {
        const Result expected = result_of(dense, compute);
        EXPECT_TRUE(result_of(packed, compute) == expected)
            << name << ", " << name_of(format) << ", " << name_of(compute);
      }
    }
  }
}

TEST_F(FrozenWeights, GiveTheGradientsOfAdaptersOnEveryInstructionSet) {
  const Spec spec =
      validated(test::small_llama({.vocabulary = 83, .context = 8, .width = 36, .heads = 3}, 70));
  auto [packed, dense] = frozen_pair(spec, WeightFormat::int4);
  adapt(packed), adapt(dense);
  for (const std::string& isa : testable_isas()) {
    use_isa(isa);
    for (const DType compute : {DType::f32, DType::bf16}) {
      const Result expected = result_of(dense, compute), found = result_of(packed, compute);
      EXPECT_TRUE(found == expected) << isa << " " << name_of(compute);
      for (const auto& [name, gradient] : found.gradients) {
        const bool zero =
            std::all_of(gradient.begin(), gradient.end(), [](float g) { return g == 0; });
        EXPECT_FALSE(zero) << name;
      }
    }
  }
}

TEST_F(FrozenWeights, GiveTheLossOfDenseWeightsInEvaluation) {
  const Spec tiny = test::small_decoder({.vocabulary = 7, .context = 6, .width = 6});
  const NoGradient off;
  for (const auto& [name, spec] : test::mixtures(tiny)) {
    auto [packed, dense] = frozen_pair(spec, WeightFormat::int4);
    for (const DType compute : {DType::f32, DType::bf16}) {
      EXPECT_EQ(number_of(loss_of(packed, compute)), number_of(loss_of(dense, compute)))
          << name << ", " << name_of(compute);
    }
  }
}

TEST_F(FrozenWeights, AreNotTrainable) {
  Transformer model = test::made(validated(test::small_decoder()));
  pack(model, WeightFormat::int8);
  freeze_packed(model);
  int frozen = 0;
  model.each([&](const std::string& name, Parameter& p) {
    if (p.packed) ++frozen;
    EXPECT_EQ(p.trainable, !p.packed) << name;
  });
  EXPECT_GT(frozen, 0);
}

}  // namespace
}  // namespace fovea::model
