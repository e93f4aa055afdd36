// Layers, optimisers and models for loops of one's own (fovea/nn.h).

#include "fovea/nn.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "fovea/fovea.h"
#include "support/expect_error.h"
#include "support/small_spec.h"
#include "support/temporary_folder.h"

namespace fovea {
namespace {

model::StackSpec two_layers() {
  model::StackSpec spec;
  spec.layers = 2;
  spec.attention.heads = 2;
  spec.position.kind = model::PositionKind::rotary;
  spec.norm.kind = model::NormKind::rms;
  spec.ffn.gated = true;
  return spec;
}

Tensor ids_of(std::vector<int32_t> ids, int64_t rows) {
  return tensor_of(ids, {rows, std::ssize(ids) / rows});
}

TEST(Layers, ComputeWhatTheirOpsCompute) {
  const nn::Layer layer = nn::linear(3, 2, true, 7);
  ASSERT_EQ(layer.parameters().size(), 2u);
  const Tensor &weight = layer.parameters()[0].parameter->value,
               &bias = layer.parameters()[1].parameter->value;
  EXPECT_EQ(to_floats(weight), to_floats(normal({2, 3}, 0.02f, 7)));
  EXPECT_FALSE(layer.parameters()[1].parameter->decays);
  const Tensor x = normal({4, 3}, 1, 1);
  EXPECT_EQ(to_floats(layer(x)), to_floats(linear(x, weight, bias)));

  model::NormSpec rms;
  rms.kind = model::NormKind::rms;
  const nn::Layer norm = nn::norm(rms, 3);
  EXPECT_EQ(to_floats(norm(x)), to_floats(rms_norm(x, full({3}, 1), rms.epsilon, DType::f32)));
  EXPECT_EQ(to_floats(nn::sequence({layer, nn::norm(rms, 2)})(x)),
            to_floats(nn::norm(rms, 2)(layer(x))));
}

// The layers of a model are those of a stack with the same description.
TEST(Layers, AStackIsThatOfAModel) {
  model::Spec spec;
  spec.vocabulary = 11;
  spec.width = 8;
  spec.context = 6;
  spec.decoder = two_layers();
  const nn::Transformer model(spec, 3);
  const nn::Layer stack = nn::stack(two_layers(), 8, 6, true, 5);
  std::map<std::string, Tensor> own = nn::values(model.parameters());
  const Tensor table = own.at("embedding.token");
  own.erase("embedding.token");
  nn::assign(stack.parameters(), own);
  const Tensor ids = ids_of({1, 2, 3, 4, 5, 6, 7, 8}, 2);
  EXPECT_EQ(to_floats(stack(embedding(ids, table))), to_floats(model.hidden(ids)));
}

TEST(Layers, AttentionIsCausalIfItsDescriptionIs) {
  model::StackSpec spec = two_layers();
  for (const bool causal : {true, false}) {
    spec.causal = causal;
    const nn::Layer attention = nn::attention(spec, 8, 4, 2);
    const Tensor x = normal({1, 4, 8}, 1, 3), changed = copy(x);
    for (float& each : changed.rows(0, 1).span<float>().last(8)) each += 1;  // the last token
    const auto before = to_floats(attention(x)), after = to_floats(attention(changed));
    EXPECT_EQ(std::equal(before.begin(), before.begin() + 8, after.begin()), causal);
  }
}

TEST(Layers, RefuseWhatCannotBe) {
  model::StackSpec spec = two_layers();
  spec.attention.heads = 3;
  expect_error(ErrorKind::InvalidArgument, {"heads"}, [&] { nn::stack(spec, 8, 4, true, 1); });
  expect_error(ErrorKind::InvalidArgument, {"linear"}, [&] { nn::linear(0, 1, true, 1); });
  const nn::Layer layer = nn::linear(2, 2, true, 1);
  expect_error(ErrorKind::InvalidArgument, {"compute", "fp32 or bf16"},
               [&] { layer(zeros({1, 2}), {.compute = DType::i32}); });
  expect_error(ErrorKind::InvalidArgument, {"layer"}, [] { nn::Layer({}, {}); });
}

double train_to(const nn::Transformer& model, nn::Optimizer& optimizer, int steps) {
  const Tensor ids = ids_of({1, 2, 3, 4, 5, 6}, 1), labels = ids_of({2, 3, 4, 5, 6, -1}, 1);
  double loss = 0;
  for (int step = 0; step < steps; ++step) {
    const Tensor mean = model.loss(model.hidden(ids, {.training = true}), labels);
    loss = number_of(mean);
    backward(mean);
    optimizer.step(1e-2);
  }
  return loss;
}

TEST(NnOptimizer, LearnsAndContinuesWithTheSameBits) {
  for (const train::OptimizerKind kind :
       {train::OptimizerKind::adamw, train::OptimizerKind::sgd, train::OptimizerKind::lion,
        train::OptimizerKind::adafactor, train::OptimizerKind::muon}) {
    const nn::Transformer model(test::small_decoder(), 1), again(test::small_decoder(), 2);
    const train::OptimizerOptions options{.choice = {.kind = kind}};
    nn::Optimizer optimizer(model.parameters(), options);
    const double first = train_to(model, optimizer, 1);
    train_to(model, optimizer, 20);
    EXPECT_LT(train_to(model, optimizer, 1), first);

    nn::Optimizer other(again.parameters(), options);
    std::map<std::string, Tensor> state;
    for (const auto& [name, tensor] : optimizer.state()) state[name] = copy(tensor);
    other.restore(state, optimizer.steps());
    EXPECT_EQ(other.steps(), 22);
    train_to(model, optimizer, 3);
    train_to(again, other, 3);
    for (const auto& [name, tensor] : nn::values(model.parameters()))
      EXPECT_EQ(to_floats(tensor), to_floats(nn::values(again.parameters()).at(name))) << name;
  }
}

TEST(NnOptimizer, LeavesParametersAloneIfAGradientIsNotFinite) {
  const auto parameter = std::make_shared<nn::Parameter>(nn::Parameter{full({2}, 1)});
  nn::Optimizer optimizer(std::vector<nn::NamedParameter>{{"x", parameter}});
  backward(sum(scale(parameter->value, std::numeric_limits<float>::infinity())));
  EXPECT_FALSE(std::isfinite(optimizer.step(1)));
  EXPECT_EQ(to_floats(parameter->value), (std::vector<float>{1, 1}));
  EXPECT_EQ(optimizer.steps(), 0);
  EXPECT_FALSE(parameter->value.gradient());
  expect_error(ErrorKind::InvalidArgument, {"x: no such tensor"},
               [&] { optimizer.restore({}, 1); });
}

TEST(Parameters, AreAssignedAllOrNone) {
  const nn::Layer layer = nn::linear(2, 2, true, 1);
  const auto before = to_floats(layer.parameters()[0].parameter->value);
  std::map<std::string, Tensor> values = {{"linear.weight", zeros({2, 2})}};
  expect_error(ErrorKind::InvalidArgument, {"linear.bias"},
               [&] { nn::assign(layer.parameters(), values); });
  values["linear.bias"] = zeros({3});
  expect_error(ErrorKind::InvalidArgument, {"linear.bias", "[3]", "[2]"},
               [&] { nn::assign(layer.parameters(), values); });
  EXPECT_EQ(to_floats(layer.parameters()[0].parameter->value), before);
}

TEST(NnTransformer, HooksSeeAndReplaceValues) {
  const nn::Transformer model(test::small_decoder(), 1);
  const Tensor ids = ids_of({1, 2, 3, 4}, 1);
  std::vector<std::string> seen;
  nn::Pass pass;
  pass.hooked = {"hidden", "attention", "mlp_hidden"};
  pass.hook = [&](std::string_view name, int64_t layer, Tensor&) {
    seen.push_back(std::string(name) + " " + std::to_string(layer));
  };
  const NoGradient off;
  const auto plain = to_floats(model.hidden(ids));
  EXPECT_EQ(to_floats(model.hidden(ids, pass)), plain);
  EXPECT_EQ(seen.front(), "hidden 0");
  EXPECT_EQ(seen[1], "attention 0");
  EXPECT_EQ(seen[2], "mlp_hidden 0");
  pass.hook = [&](std::string_view name, int64_t layer, Tensor& value) {
    if (name == "hidden" && layer == 1) value = zeros(value.shape());
  };
  EXPECT_NE(to_floats(model.hidden(ids, pass)), plain);
  pass.hook = [&](std::string_view, int64_t, Tensor& value) { value = zeros({1}); };
  expect_error(ErrorKind::InvalidArgument, {"hidden.0", "[1]"}, [&] { model.hidden(ids, pass); });
}

// A model that exists is trained in a loop of one's own, and saved again.
TEST(NnTransformer, GoesBackIntoAModel) {
  const TemporaryFolder folder;
  write_file_atomically(folder / "text.txt", "to be or not to be");
  const text::Tokenizer tokenizer =
      train::train_tokenizer({folder / "text.txt"}, {.kind = text::TokenizerKind::character})
          ->tokenizer;
  model::Spec spec = test::small_decoder();
  spec.vocabulary = 0;
  const model::Model model = model::Model::create(spec, tokenizer, 1);
  const nn::Transformer layers(model);
  nn::Optimizer optimizer(layers.parameters());
  train_to(layers, optimizer, 3);
  const model::Model trained = model.with_weights(layers);
  trained.save(folder / "model");
  const nn::Transformer read(model::Model::open(folder / "model"));
  const Tensor ids = ids_of({1, 2, 3}, 1);
  const NoGradient off;
  EXPECT_EQ(to_floats(read.hidden(ids)), to_floats(layers.hidden(ids)));
  EXPECT_NE(to_floats(nn::Transformer(model).hidden(ids)), to_floats(layers.hidden(ids)));
  model::Spec other = model.spec();
  other.width *= 2;
  expect_error(ErrorKind::InvalidArgument, {"with_weights"},
               [&] { model.with_weights(nn::Transformer(other, 1)); });
}

TEST(NnTransformer, RefusesWrongInput) {
  const nn::Transformer model(test::small_decoder(), 1);
  expect_error(ErrorKind::InvalidArgument, {"ids", "[B, T]"}, [&] { model.hidden(zeros({2, 3})); });
  expect_error(ErrorKind::InvalidArgument, {"encoder"}, [&] { model.encode(ids_of({1}, 1)); });
  expect_error(ErrorKind::InvalidArgument, {"memory"},
               [&] { model.hidden(ids_of({1}, 1), {}, zeros({1, 1, 8})); });
}

}  // namespace
}  // namespace fovea
