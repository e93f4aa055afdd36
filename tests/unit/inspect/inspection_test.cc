// An inspection gives the results of trace_model for every kind of model, and does not change the
// results of later traces.

#include "inspect/inspection.h"

#include <cmath>

#include "inspect/trace.h"
#include "loading/loading.h"
#include "support/expect_error.h"
#include "support/small_spec.h"
#include "unit/inspect/ids.h"
#include "unit/inspect/kinds.h"

namespace fovea::study {
namespace {

class Inspecting : public testing::TestWithParam<size_t> {
 protected:
  Inspecting() {
    model_ = model::Transformer(model::validated(kinds()[GetParam()].second));
    model::initialise(model_, 1);
    enlarge_weights(model_);
    both_ = model_.spec.encoder && model_.spec.decoder;
  }

  Inspection inspected(std::vector<model::HeadIndex> muted = {}) const {
    return inspection_of(model_, ids_, both_ ? target_ : ids_, std::move(muted));
  }

  TraceTensors traced() {
    TraceInput input;
    input.ids = row(ids_);
    if (both_) {  // the labels are the target, shifted by one
      input.labels = row({target_[1], target_[2], target_[3], 1});
      input.start = target_[0];
    }
    return trace_model(model_, model::fovea_format, input);
  }

  std::vector<model::AttentionKind> looks() const {
    if (both_)
      return {model::AttentionKind::self, model::AttentionKind::encoder,
              model::AttentionKind::cross};
    return {model::AttentionKind::self};
  }
  std::string name_of(model::AttentionKind kind) const {
    if (!both_) return "attention.";
    return kind == model::AttentionKind::self      ? "decoder_attention."
           : kind == model::AttentionKind::encoder ? "encoder_attention."
                                                   : "cross_attention.";
  }

  model::Transformer model_;
  bool both_ = false;
  const std::vector<int32_t> ids_{1, 5, 2, 9, 5, 1, 12}, target_{0, 3, 7, 3};
};

void expect_near(const std::vector<float>& found, const float* expected, const std::string& what) {
  for (size_t i = 0; i < found.size(); ++i) ASSERT_NEAR(found[i], expected[i], 1e-6) << what << i;
}

TEST_P(Inspecting, MapsMatchTrace) {
  const Inspection here = inspected();
  const auto expected = traced();
  for (const model::AttentionKind kind : looks()) {
    for (int64_t layer = 0; layer < 3; ++layer) {
      const Tensor all = expected.at(name_of(kind) + std::to_string(layer));
      const int64_t T = all.dim(2), S = all.dim(3);
      expect_near(here.map({kind, layer, {0, 1, 2, 3}, false, 0, -1, 0, -1, 1}).weights,
                  all.data_as<float>(), "map ");
      for (int64_t h = 0; h < 4; ++h)
        for (int64_t t = 0; t < T; ++t)
          expect_near(here.map({kind, layer, {h}, false, t, t + 1, 0, -1, 1}).weights,
                      all.data_as<float>() + (h * T + t) * S, "row ");
    }
  }
}

TEST_P(Inspecting, LogitsAndHiddenStatesMatchTrace) {
  const Inspection here = inspected();
  const auto expected = traced();
  const Tensor logits = expected.at("logits");
  const StackRun& run = here.state().run(model::AttentionKind::self);
  for (int64_t t = 0; t < run.tokens(); ++t)
    expect_near(here.logits(t), logits.data_as<float>() + t * logits.dim(-1), "logits ");
  const std::string stack = both_ ? "decoder_hidden." : "hidden.";
  for (size_t layer = 0; layer < 3; ++layer) {
    const Tensor hidden = expected.at(stack + std::to_string(layer));
    expect_near(to_floats(run.stream[layer]), hidden.data_as<float>(), "hidden ");
  }
}

// Expects the streams of a layer without norms of outputs and sums to be the sums of its steps.
void expect_sums(const model::Block& block, const std::map<std::string, WalkStep>& steps) {
  const auto is_sum = [&](const model::Norms& norms) {
    return !norms.output.present() && !norms.sum.present() && block.residual_scale == 1;
  };
  const auto value = [&](const char* name, size_t i) { return steps.at(name).values[i]; };
  for (size_t i = 0; i < steps.at("stream").values.size(); ++i) {
    float h = value("stream", i) + value("attention_output", i);
    if (!block.parallel) {
      if (is_sum(block.attention_norm)) {
        ASSERT_EQ(value("attention_stream", i), h);
      }
      h = value("attention_stream", i);
    }
    if (block.cross) {
      ASSERT_EQ(value("cross_stream", i), h + value("cross_output", i));
      h = value("cross_stream", i);
    }
    if (is_sum(block.ffn_norm)) {
      ASSERT_EQ(value("ffn_stream", i), h + value("ffn_output", i));
    }
  }
}

// The steps of a token end with the residual stream of the run, and each stream is the sum of the
// one before and the sublayer's output. Regression: the output of attention was shown without the
// factors of LayerScale.
TEST_P(Inspecting, StepsOfATokenEndWithTheBitsOfTheRun) {
  const Inspection here = inspected();
  for (const model::AttentionKind kind : looks()) {
    if (kind == model::AttentionKind::cross) continue;
    const StackRun& run = here.state().run(kind);
    for (int64_t layer = 0; layer < 3; ++layer) {
      for (int64_t token = 0; token < run.tokens(); ++token) {
        std::map<std::string, WalkStep> steps;
        for (const WalkStep& step : here.walk({kind, token, layer, 1, 100}))
          steps[step.name] = step;
        const Tensor& after = run.stream[static_cast<size_t>(layer) + 1];
        const float* expected = after.data_as<float>() + token * 16;
        for (size_t i = 0; i < 16; ++i)
          ASSERT_EQ(steps.at("ffn_stream").values[i], expected[i]) << layer << " " << token;
        expect_sums(*run.stack->block(layer), steps);
        const auto& scores = steps.at("scores").values;
        const auto& weights = steps.at("weights").values;
        double sum = 0, most = *std::max_element(scores.begin(), scores.end());
        for (const float s : scores) sum += std::exp(double{s} - most);
        for (size_t i = 0; i < scores.size(); ++i)
          ASSERT_NEAR(std::exp(double{scores[i]} - most) / sum, double{weights[i]}, 2e-6);
      }
    }
  }
}

TEST_P(Inspecting, DoesNotChangeTheResults) {
  const auto before = traced();
  const Inspection here = inspected();
  for (const model::AttentionKind kind : looks()) {
    here.map({kind, 1, {0, 2}, true, 1, 3, 0, 2, 2});
    here.head_scores(kind, 2);
  }
  here.walk({model::AttentionKind::self, 1, 1, 1, 4});
  here.lens(0, 3);
  here.surprise();
  const auto after = traced();
  for (const auto& [name, value] : before) {
    if (value.dtype() == DType::i32) continue;
    ASSERT_EQ(to_floats(value), to_floats(after.at(name))) << name;
  }
}

TEST_P(Inspecting, MutedHeadsContributeNothing) {
  const Inspection whole = inspected(), without = inspected({{model::AttentionKind::self, 1, 2}});
  const AttentionMap& here = without.state().attended(model::AttentionKind::self, 1);
  const int64_t D = here.heads.dim(3);
  for (int64_t t = 0; t < here.heads.dim(1); ++t)
    for (int64_t d = 0; d < D; ++d)
      ASSERT_EQ(here.heads.data_as<float>()[(t * 4 + 2) * D + d], 0.0f);
  EXPECT_EQ(to_floats(whole.state().run(model::AttentionKind::self).stream[1]),
            to_floats(without.state().run(model::AttentionKind::self).stream[1]));
  EXPECT_NE(to_floats(whole.state().run(model::AttentionKind::self).stream[2]),
            to_floats(without.state().run(model::AttentionKind::self).stream[2]));
  EXPECT_NE(whole.logits(2), without.logits(2));
}

INSTANTIATE_TEST_SUITE_P(Kinds, Inspecting, testing::Range(size_t{0}, kinds().size()));

class Questions : public testing::Test {
 protected:
  Questions() : model_(model::validated(small())) { model::initialise(model_, 1); }
  model::Transformer model_;
  const std::vector<int32_t> ids_{1, 5, 2, 9, 5, 1, 12};
};

TEST_F(Questions, MapsArePooledByTheMaximum) {
  const Inspection here = inspection_of(model_, {}, ids_);
  const AttentionWeights whole =
      here.map({model::AttentionKind::self, 0, {1}, false, 0, -1, 0, -1, 1});
  const AttentionWeights pooled =
      here.map({model::AttentionKind::self, 0, {1}, false, 0, -1, 0, -1, 3});
  ASSERT_EQ(pooled.rows, 3);
  ASSERT_EQ(pooled.keys, 3);
  for (int64_t r = 0; r < 3; ++r) {
    for (int64_t k = 0; k < 3; ++k) {
      float most = 0;
      for (int64_t i = r * 3; i < std::min<int64_t>(r * 3 + 3, 7); ++i)
        for (int64_t j = k * 3; j < std::min<int64_t>(k * 3 + 3, 7); ++j)
          most = std::max(most, whole.weights[static_cast<size_t>(i * 7 + j)]);
      EXPECT_EQ(pooled.weights[static_cast<size_t>(r * 3 + k)], most);
    }
  }
}

TEST_F(Questions, MapsOfSeveralHeadsAreAveraged) {
  const Inspection here = inspection_of(model_, {}, ids_);
  const AttentionWeights two =
      here.map({model::AttentionKind::self, 2, {0, 3}, false, 0, -1, 0, -1, 1});
  const AttentionWeights mean =
      here.map({model::AttentionKind::self, 2, {0, 3}, true, 0, -1, 0, -1, 1});
  for (size_t i = 0; i < mean.weights.size(); ++i)
    EXPECT_NEAR(mean.weights[i], (two.weights[i] + two.weights[i + 49]) / 2, 1e-7);
}

TEST_F(Questions, StrongestWeightsAreSorted) {
  const Inspection here = inspection_of(model_, {}, ids_);
  const AttentionWeights map =
      here.map({model::AttentionKind::self, 0, {2}, false, 0, -1, 0, -1, 1});
  const auto rows = here.strongest({model::AttentionKind::self, 0, {2}, false, 0, -1, 0, -1, 1}, 2);
  ASSERT_EQ(rows[0].size(), 1u);  // the first token sees only itself
  EXPECT_EQ(rows[0][0].weight, 1.0f);
  ASSERT_EQ(rows[6].size(), 2u);
  EXPECT_GE(rows[6][0].weight, rows[6][1].weight);
  EXPECT_EQ(rows[6][0].weight, *std::max_element(map.weights.end() - 7, map.weights.end()));
}

TEST_F(Questions, HeadScoresAreFractionsOfTheWeights) {
  auto state = std::make_unique<Inspection::State>(model_, std::vector<int32_t>{}, ids_);
  state->text = {{1, "a"}, {5, ","}};  // texts of the first tokens
  const Inspection here(std::move(state));
  const AttentionWeights map =
      here.map({model::AttentionKind::self, 1, {0}, false, 0, -1, 0, -1, 1});
  const auto at = [&](int64_t t, int64_t s) { return map.weights[static_cast<size_t>(t * 7 + s)]; };
  double previous = 0, first = 0, punctuation = 0;
  for (int64_t t = 0; t < 7; ++t) {
    first += double{at(t, 0)} / 7;
    punctuation += double{at(t, 1)} / 7;
    if (t > 0) previous += double{at(t, t - 1)} / 7;
  }
  const HeadScores scores = here.head_scores(model::AttentionKind::self, 1)[0];
  EXPECT_NEAR(scores.previous, previous, 1e-6);
  EXPECT_NEAR(scores.first, first, 1e-6);
  EXPECT_NEAR(scores.punctuation, punctuation, 1e-6);
  EXPECT_EQ(scores.next, 0);  // causal
  EXPECT_NEAR(scores.same, double{at(4, 1) + at(5, 0)} / 7, 1e-6);
  EXPECT_GT(scores.diffuse, 0.9);  // random weights give nearly uniform attention
  EXPECT_LE(scores.diffuse, 1.0);
}

TEST_F(Questions, SurpriseIsTheLossOfEachToken) {
  const Inspection here = inspection_of(model_, {}, ids_);
  TraceInput input;
  input.ids = input.labels = row(ids_);
  const auto traced = trace_model(model_, model::fovea_format, input);
  double sum = 0;
  const auto all = here.surprise();
  ASSERT_EQ(all.size(), 6u);
  for (const Surprise& s : all) sum -= std::log(s.probability);
  EXPECT_NEAR(sum / 6, double{*traced.at("loss").data_as<float>()}, 1e-5);
  EXPECT_EQ(all[0].id, 5);
  EXPECT_NEAR(all[0].entropy, std::log(13.0), 0.1);
}

TEST_F(Questions, LensEndsWithTheModelsPrediction) {
  const Inspection here = inspection_of(model_, {}, ids_);
  const auto lens = here.lens(2, 5);
  ASSERT_EQ(lens.size(), 4u);
  ASSERT_EQ(lens[3].size(), 3u);
  for (int64_t t = 2; t < 5; ++t) {
    const auto z = here.logits(t);
    EXPECT_EQ(lens[3][static_cast<size_t>(t - 2)].id,
              std::max_element(z.begin(), z.end()) - z.begin());
  }
}

TEST_F(Questions, GradientNormsMatchTrace) {
  TraceInput input;
  input.ids = input.labels = row(ids_);
  input.gradients = true;
  double squares = 0;
  for (const auto& [name, value] : trace_model(model_, model::fovea_format, input))
    if (name.starts_with("grad.decoder.1."))
      for (const float g : to_floats(value)) squares += double{g} * double{g};
  const auto sizes = gradient_sizes(model_, ids_);
  ASSERT_EQ(sizes.size(), 3u);
  EXPECT_NEAR(sizes[1], std::sqrt(squares), 1e-5);
  model_.each([](const std::string& name, model::Parameter& p) {
    EXPECT_FALSE(p.value.wants_gradient()) << name << ": not restored";
  });
}

TEST_F(Questions, WalksShowTheScoresOfTheRouterAndTheSharedExperts) {
  model::Spec spec = small();
  spec.decoder->ffn.experts = {.count = 4, .score = model::ExpertScore::sigmoid, .shared = 2};
  model::Transformer model(model::validated(spec));
  model::initialise(model, 1);
  const Inspection here = inspection_of(model, {}, ids_);
  std::vector<std::string> names;
  std::map<std::string, WalkStep> steps;
  for (const WalkStep& step : here.walk({model::AttentionKind::self, 3, 1, 0, 100})) {
    if (steps.contains("ffn_norm") && !steps.contains("ffn_output")) names.push_back(step.name);
    steps[step.name] = step;
  }
  EXPECT_EQ(names, (std::vector<std::string>{"router", "experts", "shared_experts", "ffn_output"}));
  for (const float score : steps["router"].values) EXPECT_NEAR(score, 0.5, 0.1);  // no softmax
  EXPECT_EQ(steps["shared_experts"].shape, (std::vector<int64_t>{7, 16}));
  EXPECT_NE(steps["shared_experts"].values, steps["ffn_output"].values);
}

TEST_F(Questions, InvalidArgumentsAreNamed) {
  const auto refused = [](std::initializer_list<std::string> texts, const auto& call) {
    expect_error(ErrorKind::InvalidArgument, texts, call);
  };
  refused({"no tokens"}, [&] { inspection_of(model_, {}, {}); });
  refused({"ids: 13; expected 0 to 12"}, [&] { inspection_of(model_, {}, {13}); });
  refused({"13 tokens; expected at most 12"},
          [&] { inspection_of(model_, {}, std::vector<int32_t>(13, 1)); });
  refused({"head: 4; expected 0 to 3"},
          [&] { inspection_of(model_, {}, {1}, {{model::AttentionKind::self, 0, 4}}); });
  refused({"look: encoder and cross"},
          [&] { inspection_of(model_, {}, {1}, {{model::AttentionKind::cross, 0, 0}}); });
  const Inspection here = inspection_of(model_, {}, ids_);
  refused({"layer: 3; expected 0 to 2"}, [&] { here.map({model::AttentionKind::self, 3, {0}}); });
  refused({"head: 9; expected 0 to 3"}, [&] { here.map({model::AttentionKind::self, 0, {9}}); });
  refused({"query rows: 2 to 9"},
          [&] { here.map({model::AttentionKind::self, 0, {0}, false, 2, 9}); });
  refused({"keys: 5 to 5"},
          [&] { here.map({model::AttentionKind::self, 0, {0}, false, 0, -1, 5, 5}); });
  refused({"position 7; expected 0 to 6"}, [&] { here.logits(7); });
  refused({"token 7; expected 0 to 6"},
          [&] { here.walk({model::AttentionKind::self, 7, 0, 0, 1}); });
  refused({"positions 0 to 8"}, [&] { here.lens(0, 8); });
}

}  // namespace
}  // namespace fovea::study
