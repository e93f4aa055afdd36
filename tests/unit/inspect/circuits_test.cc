// Neurons, attributions, patches and circuits of heads, compared with direct computations from the
// values of a trace and the weights.

#include "fovea/study/circuits.h"

#include <cmath>
#include <numeric>

#include "inspect/trace.h"
#include "loading/loading.h"
#include "support/expect_error.h"
#include "transformer/token_vectors.h"
#include "unit/inspect/ids.h"
#include "unit/inspect/kinds.h"

namespace fovea::study {
namespace {

constexpr int64_t kWidth = 16, kVocabulary = 13;

double sum_of(const LogitAttribution& a) {
  double sum = a.embedding + a.biases;
  for (const auto& layer : a.heads) sum = std::accumulate(layer.begin(), layer.end(), sum);
  for (const auto* each : {&a.recurrence, &a.cross, &a.feed_forward})
    sum = std::accumulate(each->begin(), each->end(), sum);
  return sum;
}

class Circuits : public testing::TestWithParam<size_t> {
 protected:
  Circuits() {
    model_ = model::Transformer(model::validated(kinds()[GetParam()].second));
    model::initialise(model_, 1);
    enlarge_weights(model_);
    both_ = model_.spec.encoder && model_.spec.decoder;
  }
  Inspection inspected() const { return inspection_of(model_, ids_, both_ ? target_ : ids_); }

  model::Transformer model_;
  bool both_ = false;
  const std::vector<int32_t> ids_{1, 5, 2, 9, 5, 1, 12}, target_{0, 3, 7, 3};
};

TEST_P(Circuits, AttributionsAddUpToTheDifferenceOfTheLogits) {
  const Inspection run = inspected();
  for (const int64_t token : {0, 3}) {
    const LogitAttribution found = attribute_logits(run, token, 4, 7);
    const std::vector<float> z = run.logits(token);
    const double expected = double{z[4]} - double{z[7]};
    EXPECT_NEAR(found.difference, expected, 1e-5 * (1 + std::abs(expected)));
    EXPECT_NEAR(sum_of(found), found.difference, 1e-5 * (1 + std::abs(expected)));
    EXPECT_EQ(found.heads.size(), 3u);
    EXPECT_EQ(found.heads[1].size(), 4u);
    EXPECT_EQ(found.cross[1] != 0, both_);
  }
}

INSTANTIATE_TEST_SUITE_P(Kinds, Circuits, testing::Range(size_t{0}, kinds().size()));

TEST(AttributionOfRecurrentLayers, AddsUp) {
  model::Spec spec = small();
  spec.decoder->mixers = {model::MixerKind::lstm, model::MixerKind::attention};
  model::Transformer model(model::validated(spec));
  model::initialise(model, 1);
  enlarge_weights(model);
  const Inspection run = inspection_of(model, {}, {1, 5, 2});
  const LogitAttribution found = attribute_logits(run, 2, 4, 7);
  const std::vector<float> z = run.logits(2);
  EXPECT_NEAR(sum_of(found), double{z[4]} - double{z[7]}, 1e-5);
  EXPECT_TRUE(found.heads[0].empty());
  EXPECT_NE(found.recurrence[0], 0);
}

// A plain decoder with LayerNorm, whose formulas the tests write out.
class PlainCircuits : public testing::Test {
 protected:
  PlainCircuits() : PlainCircuits(small()) {}
  explicit PlainCircuits(const model::Spec& spec) : model_(model::validated(spec)) {
    model::initialise(model_, 1);
    enlarge_weights(model_);
    model_.each(
        [](const std::string&, model::Parameter& p) {  // gains and biases of some other value
          if (p.role != model::Role::gain && p.role != model::Role::bias) return;
          for (int64_t i = 0; i < p.value.size(); ++i)
            p.value.data_as<float>()[i] += 0.1f * static_cast<float>(i % 5);
        });
  }

  TraceTensors traced(const std::vector<int32_t>& ids, const TraceTensors& patches = {}) {
    TraceInput input;
    input.ids = row(ids);
    input.what = {"*"};
    input.patches = patches;
    return trace_model(model_, model::fovea_format, input);
  }
  Inspection inspected(const std::vector<int32_t>& ids) const {
    return inspection_of(model_, {}, ids);
  }
  void expect_patches_of_traces();
  // Returns what `added` changes of the logits: through the final norm with the scale of `stream`.
  std::vector<double> direct_effect(const std::vector<double>& added, const float* stream) const {
    const model::Norm& norm = model_.decoder.norm;
    const double mean = std::accumulate(stream, stream + kWidth, 0.0) / kWidth;
    double variance = 0;
    for (int64_t c = 0; c < kWidth; ++c) variance += std::pow(double{stream[c]} - mean, 2) / kWidth;
    const double own = std::accumulate(added.begin(), added.end(), 0.0) / kWidth;
    const Tensor& table =
        model_.spec.head.tied ? model_.token_embedding.value : model_.head.output.weight.value;
    std::vector<double> effect(kVocabulary);
    for (size_t v = 0; v < effect.size(); ++v)
      for (size_t c = 0; c < added.size(); ++c)
        effect[v] += (added[c] - own) / std::sqrt(variance + double{norm.spec.epsilon}) *
                     double{norm.weight.value.data_as<float>()[c]} *
                     double{table.data_as<float>()[v * kWidth + c]};
    return effect;
  }

  model::Transformer model_;
  const std::vector<int32_t> ids_{1, 5, 2, 9, 5, 1, 12}, other_{1, 5, 7, 9, 5, 3, 12};
};

TEST_F(PlainCircuits, AttributionsOfHeadsAndFeedForwardLayersAreTheirOutputsTimesTheHead) {
  const auto values = traced(ids_);
  const LogitAttribution found = attribute_logits(inspected(ids_), 4, 2, 11);
  const float* const stream = values.at("hidden.unnormed").data_as<float>() + 4 * kWidth;
  for (size_t l = 0; l < 3; ++l) {
    const std::string layer = std::to_string(l);
    const float* const fed = values.at("mlp_output." + layer).data_as<float>() + 4 * kWidth;
    const auto effect = direct_effect({fed, fed + kWidth}, stream);
    EXPECT_NEAR(found.feed_forward[l], effect[2] - effect[11], 1e-5);
    const Tensor heads = values.at("heads." + layer);  // [1, T, H, D]
    const Tensor& matrix =
        std::get<model::Attention>(model_.decoder.blocks[l].mixer).output.weight.value;  // [C, H D]
    for (size_t h = 0; h < 4; ++h) {
      std::vector<double> written(kWidth);
      for (size_t c = 0; c < written.size(); ++c)
        for (size_t d = 0; d < 4; ++d)
          written[c] += double{heads.data_as<float>()[(4 * 4 + h) * 4 + d]} *
                        double{matrix.data_as<float>()[c * kWidth + h * 4 + d]};
      const auto of_head = direct_effect(written, stream);
      EXPECT_NEAR(found.heads[l][h], of_head[2] - of_head[11], 1e-5) << l << " " << h;
    }
  }
}

TEST_F(PlainCircuits, NeuronsAreThoseOfTheTraceAndPromoteTheirOutputRows) {
  const auto values = traced(ids_);
  const auto layers = strongest_neurons(inspected(ids_), model::AttentionKind::self, 5, 4);
  ASSERT_EQ(layers.size(), 3u);
  const float* const stream = values.at("hidden.unnormed").data_as<float>() + 5 * kWidth;
  for (size_t l = 0; l < 3; ++l) {
    const Tensor hidden = values.at("mlp_hidden." + std::to_string(l));
    const int64_t F = hidden.dim(2);
    const float* const here = hidden.data_as<float>() + 5 * F;
    std::vector<float> sizes;
    for (int64_t n = 0; n < F; ++n) sizes.push_back(std::abs(here[n]));
    std::sort(sizes.rbegin(), sizes.rend());
    const Tensor& matrix = model_.decoder.blocks[l].ffn->down.weight.value;  // [C, F]
    ASSERT_EQ(layers[l].size(), 4u);
    for (size_t i = 0; i < 4; ++i) {
      const Neuron& neuron = layers[l][i];
      EXPECT_EQ(neuron.activation, here[neuron.neuron]);
      EXPECT_EQ(std::abs(neuron.activation), sizes[i]);
      std::vector<double> written(kWidth);
      for (size_t c = 0; c < written.size(); ++c)
        written[c] = double{neuron.activation} *
                     double{matrix.data_as<float>()[static_cast<int64_t>(c) * F + neuron.neuron]};
      const auto effect = direct_effect(written, stream);
      ASSERT_EQ(neuron.promoted.size(), 6u);
      for (const TokenValue& token : neuron.promoted)
        EXPECT_NEAR(double{token.value}, effect[static_cast<size_t>(token.id)], 1e-4);
      EXPECT_NEAR(double{neuron.promoted[0].value}, *std::max_element(effect.begin(), effect.end()),
                  1e-4);
    }
  }
}

TEST_F(PlainCircuits, MutedNeuronsGiveTheRunWithTheirActivationsAtZero) {
  const Tensor hidden = traced(ids_).at("mlp_hidden.1");
  const int64_t F = hidden.dim(2);
  for (int64_t t = 0; t < hidden.dim(1); ++t)
    for (const int64_t neuron : {3, 10}) hidden.data_as<float>()[t * F + neuron] = 0;
  const auto expected = traced(ids_, {{"mlp_hidden.1", hidden}});
  const Inspection without(std::make_unique<Inspection::State>(
      model_, std::vector<int32_t>{}, ids_, std::vector<model::HeadIndex>{},
      std::vector<NeuronIndex>{{model::AttentionKind::self, 1, 3},
                               {model::AttentionKind::self, 1, 10}}));
  for (int64_t t = 0; t < 7; ++t) {
    const float* const logits = expected.at("logits").data_as<float>() + t * kVocabulary;
    EXPECT_EQ(without.logits(t), std::vector<float>(logits, logits + kVocabulary));
  }
  const auto steps = without.walk({model::AttentionKind::self, 4, 1, 0, 100});
  for (const WalkStep& step : steps) {
    if (step.name == "ffn_activation") {
      EXPECT_EQ(step.values[10], 0);
    }
    if (step.name != "ffn_stream") continue;
    const float* const after = expected.at("hidden.2").data_as<float>() + 4 * kWidth;
    EXPECT_EQ(step.values, std::vector<float>(after, after + kWidth));
  }
  expect_error(ErrorKind::InvalidArgument, {"neuron 64 of layer 1; expected"}, [&] {
    Inspection::State(model_, {}, ids_, {}, {{model::AttentionKind::self, 1, F}});
  });
}

void PlainCircuits::expect_patches_of_traces() {
  const auto clean = traced(other_), corrupted = traced(ids_);
  const PatchedDifferences found = patch_differences(inspected(ids_), inspected(other_), 2, 11);
  const auto difference = [](const TraceTensors& values) {
    const float* const z = values.at("logits").data_as<float>() + 6 * kVocabulary;
    return double{z[2]} - double{z[11]};
  };
  EXPECT_EQ(found.into, difference(corrupted));
  EXPECT_EQ(found.from, difference(clean));
  ASSERT_EQ(found.patched.size(), 3u);
  for (size_t l = 0; l < 3; ++l) {
    const std::string name = "hidden." + std::to_string(l);
    ASSERT_EQ(found.patched[l].size(), 7u);
    for (size_t t = 0; t < 7; ++t) {
      const Tensor patch = tensor_of(to_floats(corrupted.at(name)), {1, 7, kWidth});
      const auto at = static_cast<int64_t>(t) * kWidth;
      std::copy_n(clean.at(name).data_as<float>() + at, kWidth, patch.data_as<float>() + at);
      EXPECT_EQ(found.patched[l][t], difference(traced(ids_, {{name, patch}}))) << l << " " << t;
    }
  }
  EXPECT_EQ(found.patched[2][0], found.into);  // equal tokens
  EXPECT_NE(found.patched[1][2], found.into);
}

TEST_F(PlainCircuits, PatchesGiveTheRunsOfTraces) {
  expect_patches_of_traces();
  expect_error(ErrorKind::InvalidArgument, {"3 tokens; expected 7"},
               [&] { patch_differences(inspected(ids_), inspected({1, 2, 3}), 2, 11); });
}

TEST_F(PlainCircuits, SteeringAddsTheDifferenceOfTheMeans) {
  const Inspection run = inspected(ids_), toward = inspected({3, 3, 8});
  const auto expected = [&](double strength) {
    const Tensor hidden = traced(ids_).at("hidden.1"), there = traced({3, 3, 8}).at("hidden.1");
    const auto mean = [](const Tensor& x, int64_t c) {
      double sum = 0;
      for (int64_t t = 0; t < x.dim(1); ++t) sum += double{x.data_as<float>()[t * kWidth + c]};
      return sum / static_cast<double>(x.dim(1));
    };
    const Tensor moved = empty({1, 7, kWidth});
    for (int64_t i = 0; i < moved.size(); ++i)
      moved.data_as<float>()[i] =
          static_cast<float>(double{hidden.data_as<float>()[i]} +
                             strength * (mean(there, i % kWidth) - mean(hidden, i % kWidth)));
    const Tensor logits = traced(ids_, {{"hidden.1", moved}}).at("logits");
    const float* const z = logits.data_as<float>() + 6 * kVocabulary;
    return static_cast<int32_t>(std::max_element(z, z + kVocabulary) - z);
  };
  for (const double strength : {0.0, 1.0, 4.0, -4.0}) {
    const auto ids = steer(run, toward, {1, strength, 3});
    ASSERT_EQ(ids.size(), 3u);
    EXPECT_EQ(ids[0], expected(strength)) << strength;
  }
  EXPECT_EQ(steer(run, toward, {1, 0, 64}).size(), 5u);  // the context has 12 tokens
}

TEST_F(PlainCircuits, CircuitsAreProductsOfTheWeights) {
  const HeadCircuit found = head_circuit(inspected(ids_), model::AttentionKind::self, 1, 2, 3);
  const model::Block& block = model_.decoder.blocks[1];
  const model::Attention& attention = std::get<model::Attention>(block.mixer);
  const auto embedded = [&](int32_t id) {
    return block.attention_norm.input(
        model::token_vectors(model_, row({id}), model_.token_embedding), DType::f32);
  };
  const auto part = [&](const model::Linear& layer, int32_t id) {  // of head 2
    const Tensor y = layer(embedded(id));
    return std::vector<float>(y.data_as<float>() + 8, y.data_as<float>() + 12);
  };
  const auto score = [&](int32_t query, int32_t key) {
    const auto q = part(attention.query, query), k = part(attention.key, key);
    double sum = 0;
    for (size_t d = 0; d < 4; ++d) sum += double{q[d]} * double{k[d]};
    return sum / 2;  // the root of the width of the head, 4
  };
  for (size_t q = 0; q < ids_.size(); ++q) {
    for (size_t k = 0; k < ids_.size(); ++k)
      EXPECT_NEAR(double{found.scores[q][k]}, score(ids_[q], ids_[k]), 1e-5);
    double best = -1e9;
    for (int32_t id = 0; id < kVocabulary; ++id) best = std::max(best, score(ids_[q], id));
    ASSERT_EQ(found.sought[q].size(), 3u);
    EXPECT_NEAR(double{found.sought[q][0].value}, best, 1e-5);
    EXPECT_NEAR(double{found.sought[q][2].value}, score(ids_[q], found.sought[q][2].id), 1e-5);
  }
  const auto v = part(attention.value, 9);  // the token at place 3
  const Tensor written = zeros({1, kWidth});
  for (int64_t c = 0; c < kWidth; ++c)
    for (int64_t d = 0; d < 4; ++d)
      written.data_as<float>()[c] += v[static_cast<size_t>(d)] *
                                     attention.output.weight.value.data_as<float>()[c * 16 + 8 + d];
  const Tensor z = model_.logits(model_.decoder.norm(written, DType::f32)),
               none = model_.logits(model_.decoder.norm(zeros({1, kWidth}), DType::f32));
  for (const TokenValue& token : found.written[3])
    EXPECT_NEAR(token.value, z.data_as<float>()[token.id] - none.data_as<float>()[token.id], 1e-4);
}

// Later layers read the values of layer 1, the first one with attention.
class ValueResidualCircuits : public PlainCircuits {
 protected:
  ValueResidualCircuits() : PlainCircuits(residual()) {}

 private:
  static model::Spec residual() {
    model::Spec spec = small();
    spec.decoder->mixers = {model::MixerKind::gru, model::MixerKind::attention,
                            model::MixerKind::attention};
    spec.decoder->attention.value_residual = 0.25f;
    return spec;
  }
};

TEST_F(ValueResidualCircuits, AttributionsAddUpToTheDifferenceOfTheLogits) {
  const Inspection run = inspected(ids_);
  for (const int64_t token : {0, 4}) {
    const LogitAttribution found = attribute_logits(run, token, 4, 7);
    const std::vector<float> z = run.logits(token);
    EXPECT_NEAR(sum_of(found), double{z[4]} - double{z[7]}, 1e-5);
  }
}

TEST_F(ValueResidualCircuits, PatchesGiveTheRunsOfTraces) { expect_patches_of_traces(); }

TEST_F(ValueResidualCircuits, AHeadWritesTheSumOfItsOwnAndTheFirstValues) {
  const HeadCircuit found = head_circuit(inspected(ids_), model::AttentionKind::self, 2, 3, 3);
  std::vector<double> values(4);  // of the token at place 3
  for (const auto& [layer, share] : {std::pair{1, 0.25}, {2, 0.75}}) {
    const model::Block& block = model_.decoder.blocks[static_cast<size_t>(layer)];
    const Tensor y =
        std::get<model::Attention>(block.mixer)
            .value(block.attention_norm.input(
                model::token_vectors(model_, row({9}), model_.token_embedding), DType::f32));
    for (size_t d = 0; d < 4; ++d) values[d] += share * double{y.data_as<float>()[12 + d]};
  }
  const Tensor& matrix =
      std::get<model::Attention>(model_.decoder.blocks[2].mixer).output.weight.value;  // [C, H D]
  const Tensor written = zeros({1, kWidth});
  for (int64_t c = 0; c < kWidth; ++c)
    for (int64_t d = 0; d < 4; ++d)
      written.data_as<float>()[c] += static_cast<float>(values[static_cast<size_t>(d)]) *
                                     matrix.data_as<float>()[c * 16 + 12 + d];
  const Tensor z = model_.logits(model_.decoder.norm(written, DType::f32)),
               none = model_.logits(model_.decoder.norm(zeros({1, kWidth}), DType::f32));
  for (const TokenValue& token : found.written[3])
    EXPECT_NEAR(token.value, z.data_as<float>()[token.id] - none.data_as<float>()[token.id], 1e-4);
}

TEST(RotaryAnglesOfALayer, AreThePositionsTimesTheFrequencies) {
  const model::Transformer model(model::validated(kinds()[1].second));
  model::Transformer own = model;
  model::initialise(own, 1);
  const Inspection run = inspection_of(own, {}, {1, 5, 2, 9});
  const RotaryAngles found = rotary_angles(run, model::AttentionKind::self, 1);
  ASSERT_EQ(found.pairs, 2);
  for (size_t t = 0; t < 4; ++t)
    for (size_t i = 0; i < 2; ++i) {
      const double angle =
          static_cast<double>(t) *
          std::pow(double{own.spec.decoder->position.rotary.theta}, -static_cast<double>(i) / 2);
      EXPECT_NEAR(double{found.cosines[2 * t + i]}, std::cos(angle), 1e-6);
      EXPECT_NEAR(double{found.sines[2 * t + i]}, std::sin(angle), 1e-6);
    }
}

TEST_F(PlainCircuits, InvalidPlacesAreRefused) {
  const Inspection run = inspected(ids_);
  const auto refused = [](const char* text, const auto& call) {
    expect_error(ErrorKind::InvalidArgument, {text}, call);
  };
  refused("token: 7; expected 0 to 6",
          [&] { strongest_neurons(run, model::AttentionKind::self, 7, 1); });
  refused("count: 65; expected 1 to 64",
          [&] { strongest_neurons(run, model::AttentionKind::self, 0, 65); });
  refused("answers: 13; expected 0 to 12", [&] { attribute_logits(run, 0, 13, 1); });
  refused("answers: -1; expected 0 to 12", [&] { patch_differences(run, run, -1, 1); });
  refused("layer: 3; expected 0 to 2",
          [&] { head_circuit(run, model::AttentionKind::self, 3, 0, 1); });
  refused("head: 4; expected 0 to 3",
          [&] { head_circuit(run, model::AttentionKind::self, 0, 4, 1); });
  refused("tokens: 65; expected 1 to 64", [&] { steer(run, run, {0, 1, 65}); });
  expect_error(ErrorKind::Unsupported, {"rotates no queries"},
               [&] { rotary_angles(run, model::AttentionKind::self, 0); });
}

}  // namespace
}  // namespace fovea::study
