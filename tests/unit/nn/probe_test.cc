// The values that probes receive equal those computed here from the layers.

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <map>

#include "nn/stack.h"
#include "support/random_parameters.h"

namespace fovea::model {
namespace {

constexpr int64_t kBatch = 2, kTokens = 5, kWidth = 8;

Tensor random_input(Shape shape, uint64_t seed) {
  Tensor x = empty(std::move(shape));
  Random random(seed, Stream::init);
  for (int64_t i = 0; i < x.size(); ++i) x.data_as<float>()[i] = random.normal();
  return x;
}

StackSpec one_layer() {
  StackSpec spec;
  spec.layers = 1;
  spec.attention = {.heads = 4, .kv_heads = 2, .head_width = 4, .value_width = 2};
  spec.ffn.width = 20;
  spec.latent = {.width = 7};
  spec.recurrence.width = 6;
  return spec;
}

// A layer with its results.
struct LayerRun {
  Stack stack;
  std::map<std::string, Tensor> found;

  explicit LayerRun(const StackSpec& spec, Stack::Kind kind = Stack::Kind::decoder,
                    const Tensor& memory = {})
      : stack(spec, {}, {kWidth, 0}, 8, kind) {
    test::randomise(stack, 3);
    const Probe probe{
        .see = [this](const ProbePoint& point, Tensor& value) { found[name_of(point)] = value; },
        .wants_weights = [](const ProbePoint&) { return true; }};
    Pass pass;
    pass.probe = &probe;
    pass.memory = memory;
    stack(random_input({kBatch, kTokens, kWidth}, 1), pass, {});
  }
  const Block& block() const { return stack.blocks[0]; }
  const Tensor& at(const std::string& name) const { return found.at(name); }
};

void expect_equal(const Tensor& found, const Tensor& expected) {
  EXPECT_EQ(found.shape(), expected.shape());
  EXPECT_EQ(to_floats(found), to_floats(expected));
}

void expect_near(const Tensor& found, const Tensor& expected) {
  ASSERT_EQ(found.shape(), expected.shape());
  for (int64_t i = 0; i < found.size(); ++i) {
    const float f = found.data_as<float>()[i], e = expected.data_as<float>()[i];
    if (f != e) {
      EXPECT_NEAR(f, e, 1e-5) << i;
    }
  }
}

// Scores, weights and outputs of the heads, from queries, keys and values.
struct Attended {
  Tensor scores, weights, heads;
};
Attended attended(const Tensor& q, const Tensor& k, const Tensor& v, bool causal) {
  const int64_t B = q.dim(0), T = q.dim(1), H = q.dim(2), D = q.dim(3), S = k.dim(1), G = k.dim(2),
                E = v.dim(3);
  Attended y{empty({B, H, T, S}), zeros({B, H, T, S}), zeros({B, T, H, E})};
  for (int64_t b = 0; b < B; ++b)
    for (int64_t h = 0; h < H; ++h)
      for (int64_t t = 0; t < T; ++t) {
        const int64_t g = h / (H / G), row = ((b * H + h) * T + t) * S;
        double sum = 0;
        for (int64_t s = 0; s < S; ++s) {
          double score = 0;
          for (int64_t d = 0; d < D; ++d)
            score += double{q.data_as<float>()[((b * T + t) * H + h) * D + d]} *
                     double{k.data_as<float>()[((b * S + s) * G + g) * D + d]};
          score = causal && s > t ? -std::numeric_limits<double>::infinity()
                                  : score / std::sqrt(static_cast<double>(D));
          y.scores.data_as<float>()[row + s] = static_cast<float>(score);
          sum += std::exp(score);
        }
        for (int64_t s = 0; s < S; ++s) {
          const double w = std::exp(double{y.scores.data_as<float>()[row + s]}) / sum;
          y.weights.data_as<float>()[row + s] = static_cast<float>(w);
          for (int64_t e = 0; e < E; ++e)
            y.heads.data_as<float>()[((b * T + t) * H + h) * E + e] +=
                static_cast<float>(w * double{v.data_as<float>()[((b * S + s) * G + g) * E + e]});
        }
      }
  return y;
}

void expect_attention(const LayerRun& run, const std::string& prefix, bool causal) {
  const auto at = [&](const char* name) { return run.at(prefix + name + ".0"); };
  const Attended expected = attended(at("query"), at("key"), at("value"), causal);
  expect_near(at("scores"), expected.scores);
  expect_near(at("attention"), expected.weights);
  expect_near(at("heads"), expected.heads);
}

Tensor projected(const Tensor& heads, const Linear& output) {
  return output(heads.view({heads.dim(0), heads.dim(1), heads.dim(2) * heads.dim(3)}));
}

TEST(ProbePoints, FollowFromOneAnother) {
  const DType f32 = DType::f32;
  const LayerRun run(one_layer());
  const Block& block = run.block();
  const Tensor& x = run.at("hidden.0");
  expect_equal(run.at("mixer_input.0"), block.attention_norm.input(x, f32));
  const Tensor y = run.at("mixer_input.0");
  expect_equal(run.at("query.0"),
               std::get<Attention>(block.mixer).query(y).view({kBatch, kTokens, 4, 4}));
  expect_equal(run.at("key.0"),
               std::get<Attention>(block.mixer).key(y).view({kBatch, kTokens, 2, 4}));
  expect_equal(run.at("value.0"),
               std::get<Attention>(block.mixer).value(y).view({kBatch, kTokens, 2, 2}));
  expect_attention(run, "", true);
  expect_equal(run.at("mixer_output.0"),
               projected(run.at("heads.0"), std::get<Attention>(block.mixer).output));
  expect_equal(run.at("hidden_mid.0"), add(x, run.at("mixer_output.0")));
  expect_equal(run.at("mlp_input.0"), block.ffn_norm.input(run.at("hidden_mid.0"), f32));
  expect_equal(run.at("mlp_pre.0"), block.ffn->up(run.at("mlp_input.0")));
  expect_equal(run.at("mlp_hidden.0"), activation(run.at("mlp_pre.0"), block.ffn->kind));
  expect_equal(run.at("mlp_output.0"), block.ffn->down(run.at("mlp_hidden.0")));
  expect_equal(run.at("hidden.unnormed"), add(run.at("hidden_mid.0"), run.at("mlp_output.0")));
  expect_equal(run.at("hidden.1"), run.stack.norm(run.at("hidden.unnormed"), f32));
  expect_equal(run.at("embedding"), random_input({kBatch, kTokens, kWidth}, 1));
}

TEST(ProbePoints, OfRotaryPositionsAndGatedLayersAreThoseInUse) {
  StackSpec spec = one_layer();
  spec.position.kind = PositionKind::rotary;
  spec.attention.norm = QueryKeyNorm::head;
  spec.ffn.gated = true;
  spec.placement = {true, true, false};
  const LayerRun run(spec);
  const Block& block = run.block();
  expect_attention(run, "", true);
  const Tensor projection = std::get<Attention>(block.mixer).query(run.at("mixer_input.0"));
  const Tensor normed = std::get<Attention>(block.mixer)
                            .query_norm(projection.view({kBatch, kTokens, 4, 4}), DType::f32);
  EXPECT_NE(to_floats(run.at("query.0")), to_floats(normed));  // rotated, except token 0
  for (int64_t i = 0; i < 4 * 4; ++i)
    EXPECT_EQ(run.at("query.0").data_as<float>()[i], normed.data_as<float>()[i]);
  const Tensor& y = run.at("mlp_input.0");
  expect_equal(run.at("mlp_pre.0"), block.ffn->gate(y));
  expect_equal(run.at("mlp_hidden.0"),
               gated_activation(run.at("mlp_pre.0"), block.ffn->up(y), block.ffn->kind));
  // The output points follow the norm of the output.
  expect_equal(run.at("mlp_output.0"),
               block.ffn_norm.output(block.ffn->down(run.at("mlp_hidden.0")), DType::f32));
  expect_equal(run.at("hidden.unnormed"), add(run.at("hidden_mid.0"), run.at("mlp_output.0")));
}

TEST(ProbePoints, BeforeANormExistWhereThereIsOne) {
  StackSpec spec = one_layer();
  EXPECT_FALSE(LayerRun(spec).found.contains("mixer_unnormed.0"));
  EXPECT_FALSE(LayerRun(spec).found.contains("mlp_sum.0"));
  spec.placement = {true, true, true};
  const LayerRun run(spec);
  const Block& block = run.block();
  const DType f32 = DType::f32;
  expect_equal(run.at("mixer_unnormed.0"),
               projected(run.at("heads.0"), std::get<Attention>(block.mixer).output));
  expect_equal(run.at("mixer_output.0"),
               block.attention_norm.output(run.at("mixer_unnormed.0"), f32));
  expect_equal(run.at("mixer_sum.0"), add(run.at("hidden.0"), run.at("mixer_output.0")));
  expect_equal(run.at("hidden_mid.0"), block.attention_norm.sum(run.at("mixer_sum.0"), f32));
  expect_equal(run.at("mlp_unnormed.0"), block.ffn->down(run.at("mlp_hidden.0")));
  expect_equal(run.at("mlp_output.0"), block.ffn_norm.output(run.at("mlp_unnormed.0"), f32));
  expect_equal(run.at("mlp_sum.0"), add(run.at("hidden_mid.0"), run.at("mlp_output.0")));
  expect_equal(run.at("hidden.unnormed"), block.ffn_norm.sum(run.at("mlp_sum.0"), f32));
}

TEST(ProbePoints, OfCrossAttentionHaveNamesOfTheirOwn) {
  const Tensor memory = random_input({kBatch, 3, kWidth}, 7);
  const LayerRun run(one_layer(), Stack::Kind::decoder_across, memory);
  const Block& block = run.block();
  expect_equal(run.at("cross_mixer_input.0"),
               block.cross_norm.input(run.at("hidden_mid.0"), DType::f32));
  expect_equal(run.at("cross_key.0"), block.cross->key(memory).view({kBatch, 3, 2, 4}));
  expect_attention(run, "cross_", false);
  expect_equal(run.at("cross_mixer_output.0"),
               projected(run.at("cross_heads.0"), block.cross->output));
  expect_equal(run.at("cross_hidden_mid.0"),
               add(run.at("hidden_mid.0"), run.at("cross_mixer_output.0")));
  expect_equal(run.at("mlp_input.0"),
               block.ffn_norm.input(run.at("cross_hidden_mid.0"), DType::f32));
}

TEST(ProbePoints, OfRecurrentLayersAreGatesAndStates) {
  StackSpec spec = one_layer();
  spec.mixers = {MixerKind::lstm};
  const LayerRun run(spec);
  const Recurrence& layer = std::get<Recurrence>(run.block().mixer);
  expect_equal(run.at("gates.0"), layer.input(run.at("mixer_input.0")));
  expect_equal(run.at("state.0"), layer.states(run.at("gates.0"), {}));
  expect_equal(run.at("mixer_output.0"), layer.projected(run.at("state.0")));
}

TEST(ProbePoints, OfLatentAttentionIncludeTheLatent) {
  StackSpec spec = one_layer();
  spec.mixers = {MixerKind::latent};
  spec.attention.kv_heads = 4;
  const LayerRun run(spec);
  const LatentAttention& layer = std::get<LatentAttention>(run.block().mixer);
  expect_equal(run.at("latent.0"), layer.latent_of(run.at("mixer_input.0"), {}));
  expect_equal(run.at("value.0"), layer.value_up(run.at("latent.0")).view({kBatch, kTokens, 4, 2}));
  expect_attention(run, "", true);
  expect_equal(run.at("mixer_output.0"), projected(run.at("heads.0"), layer.output));
}

TEST(ProbePoints, OfParallelLayersHaveNoStateBetweenTheSublayers) {
  StackSpec spec = one_layer();
  spec.parallel = true;
  const LayerRun run(spec);
  EXPECT_FALSE(run.found.contains("hidden_mid.0"));
  expect_equal(run.at("hidden.unnormed"),
               add(add(run.at("hidden.0"), run.at("mixer_output.0")), run.at("mlp_output.0")));
}

}  // namespace
}  // namespace fovea::model
