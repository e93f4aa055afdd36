// The values that validated() sets, and the values and combinations that it refuses.

#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "fovea/model/spec.h"
#include "support/expect_error.h"
#include "support/small_spec.h"

namespace fovea::model {
namespace {

constexpr test::SmallSize kSize{.vocabulary = 10, .heads = 6};

StackSpec small_stack() { return test::small_stack(kSize); }
Spec small_decoder() { return test::small_decoder(kSize); }
Spec small_encoder() { return test::small_encoder(kSize); }
Spec small_both() { return test::small_encoder_decoder(kSize); }

struct Case {
  std::function<void(Spec&)> change;
  std::initializer_list<std::string> texts;
};

void expect_refused(const Spec& base, std::initializer_list<Case> cases) {
  for (const Case& c : cases) {
    Spec s = base;
    c.change(s);
    SCOPED_TRACE(*c.texts.begin());
    expect_error(ErrorKind::InvalidArgument, c.texts, [&] { validated(s); });
  }
}

TEST(ValidSpecs, FillDerivedFields) {
  const Spec s = validated(small_decoder());
  EXPECT_EQ(s.decoder->attention.kv_heads, 6);
  EXPECT_EQ(s.decoder->attention.head_width, 2);
  EXPECT_EQ(s.decoder->ffn.width, 48);
  EXPECT_EQ(write_spec(validated(s)), write_spec(s));
  Spec given = small_both();
  given.decoder->attention.kv_heads = 3;
  given.decoder->attention.head_width = 5;
  given.decoder->attention.value_width = 4;
  given.decoder->ffn.width = 7;
  given.encoder->attention.kv_heads = 1;
  given.encoder->attention.head_width = given.encoder->attention.value_width = 3;
  given.encoder->ffn.width = 9;
  EXPECT_EQ(write_spec(validated(given)), write_spec(given));
}

TEST(ValidSpecs, FillWindowsExpertsAndOriginalContexts) {
  Spec s = small_decoder();
  s.decoder->attention.windows = {3};
  s.decoder->ffn = {.width = 7, .experts = {.count = 4, .dense_layers = {1, 0}}};
  s.decoder->position.kind = PositionKind::rotary;
  s.decoder->position.rotary.scaling = RotaryScaling::yarn;
  s = validated(s);
  EXPECT_EQ(s.decoder->attention.windows, (std::vector<int64_t>{3, 3}));
  EXPECT_EQ(s.decoder->ffn.experts.width, 7);
  EXPECT_EQ(s.decoder->ffn.experts.dense_layers, (std::vector<int64_t>{0, 1}));
  EXPECT_EQ(s.decoder->position.rotary.original_context, 8);
  EXPECT_EQ(write_spec(validated(s)), write_spec(s));
}

TEST(ValidSpecs, FillSharedExpertsAndGroups) {
  Spec s = small_decoder();
  ExpertsSpec& given = s.decoder->ffn.experts;
  given = {.count = 8, .width = 6, .groups = 4, .groups_chosen = 4, .shared = 3};
  const ExpertsSpec e = validated(s).decoder->ffn.experts;
  EXPECT_EQ(e.shared_width, 18);
  EXPECT_EQ(e.shared, 3);
  EXPECT_EQ(e.groups, 1);  // all groups are eligible
  EXPECT_EQ(e.groups_chosen, 1);
  const std::string expected = write_spec(validated(s));
  EXPECT_EQ(write_spec(read_spec(expected, "spec.json")), expected);
  given.shared = 1, given.shared_width = 18;  // the same layer
  EXPECT_EQ(write_spec(validated(s)), expected);
  given.shared = 3, given.shared_width = 20;
  EXPECT_EQ(validated(s).decoder->ffn.experts.shared, 1);
  given.shared = 0, given.shared_width = 0;
  const std::string without = write_spec(validated(s));
  given.shared_width = 5, given.shared_gate = true;  // without effect
  EXPECT_EQ(write_spec(validated(s)), without);
}

TEST(ValidSpecs, RefuseCombinationsOfThePartsOfFamilies) {
  expect_refused(
      small_decoder(),
      {{[](Spec& s) { s.decoder->one_norm = true; }, {"one_norm is true without parallel"}},
       {[](Spec& s) { s.head.scale = 2, s.head.bias = true; }, {"head.scale is 2 with bias"}},
       {[](Spec& s) { s.decoder->norm.gain = false, s.decoder->norm.unit_offset = true; },
        {"norm.gain is false with dyt or unit_offset"}},
       {[](Spec& s) {
          s.decoder->position.kind = PositionKind::rotary;
          s.decoder->position.rotary.unrotated = {2};
        },
        {"rotary.unrotated contains layer 2; expected at most 1"}},
       {[](Spec& s) {
          s.decoder->position.kind = PositionKind::rotary;
          s.decoder->position.rotary.query_growth = 0.5f;
          s.decoder->attention.windows = {3};
        },
        {"query_growth is 0.5; expected 0, or"}},
       {[](Spec& s) {
          s.decoder->position.kind = PositionKind::rotary;
          s.decoder->attention.norm = QueryKeyNorm::all;
          s.decoder->attention.norm_rotated = true;
        },
        {"norm_rotated is true with norm all"}},
       {[](Spec& s) { s.decoder->ffn.xielu = s.decoder->ffn.gated = true; },
        {"ffn.xielu is true with gated"}},
       {[](Spec& s) {
          s.decoder->ffn.inner_norm = true;
          s.decoder->ffn.experts.count = 3;
        },
        {"ffn.inner_norm is true with experts"}},
       {[](Spec& s) {
          s.decoder->ffn.experts = {
              .count = 3, .score = ExpertScore::sparse_mixer, .selection_bias = true};
        },
        {"sparse_mixer with selection_bias"}},
       {[](Spec& s) {
          s.decoder->ternary = true;
          s.decoder->ffn.experts.count = 3;
        },
        {"ternary is true with experts"}},
       {[](Spec& s) {
          s.decoder->norm.kind = NormKind::dyt;
          s.decoder->attention.norm = QueryKeyNorm::each;
        },
        {"attention.norm is each with dyt"}},
       {[](Spec& s) {
          s.decoder->norm.kind = NormKind::dyt;
          s.decoder->embedding_norm = s.decoder->norm_before_positions = true;
        },
        {"norm_before_positions is true with dyt"}},
       {[](Spec& s) {
          s.decoder->layer_groups = 1;
          s.decoder->position = {.kind = PositionKind::rotary, .rotary = {.unrotated = {1}}};
        },
        {"layer_groups is 1 with position.rotary.unrotated"}}});
  expect_refused(small_both(), {{[](Spec& s) { s.decoder->sublayer_scale = 0.5f; },
                                 {"sublayer_scale is 0.5 with an encoder and a decoder"}}});
}

// Models that compute the same results have the same Spec.
TEST(ValidSpecs, ResetFieldsWithoutEffect) {
  const std::function<void(Spec&)> changes[] = {
      [](Spec& s) { s.decoder->attention.windows = {0, 0}; },
      [](Spec& s) { s.decoder->ffn.experts.chosen = 7; },
      [](Spec& s) { s.decoder->ffn.experts.groups = 7; },
      [](Spec& s) { s.decoder->ffn.experts.shared = 2; },
      [](Spec& s) { s.decoder->norm.alpha = 2; },
      [](Spec& s) { s.decoder->position.buckets = 8; },
      [](Spec& s) { s.decoder->position.rotary.theta = 5; },
      [](Spec& s) { s.decoder->position.waves = Waves::halves; },
      [](Spec& s) { s.decoder->position.stored = true; },
      [](Spec& s) { s.head.pooling = Pooling::mean; },
      [](Spec& s) { s.head.activation = Activation::relu; },
      [](Spec& s) { s.head.transform_norm = true; },
      [](Spec& s) { s.head.transform_width = 5; },
      [](Spec& s) { s.head.pool_transformed = true; },
      [](Spec& s) { s.decoder->layer_groups = s.decoder->layers; },
      [](Spec& s) { s.decoder->ffn.experts.sum_bias = true; },
      [](Spec& s) { s.decoder->ffn.experts.tolerance = 0.5f; },
      [](Spec& s) { s.decoder->norm_before_positions = true; },
      [](Spec& s) { s.source_vocabulary = s.vocabulary; },
      [](Spec& s) { s.input.size = 32; },
      [](Spec& s) { s.input.frames = 32; },
      [](Spec& s) { s.decoder->attention.norm_rotated = true; },
      [](Spec& s) { s.decoder->position.bias_by_layer = true; },
      [](Spec& s) { s.decoder->position.rotary.unrotated = {1}; },
  };
  int n = 0;
  for (const auto& change : changes) {
    Spec s = small_decoder();
    change(s);
    EXPECT_EQ(write_spec(validated(s)), write_spec(validated(small_decoder()))) << n;
    ++n;
  }
  Spec a = small_decoder(), b = small_decoder();
  a.decoder->ffn.bias = b.decoder->ffn.bias = false;
  a.decoder->ffn.inner_bias = false;
  EXPECT_EQ(write_spec(validated(a)), write_spec(validated(b)));
  a.decoder->attention.bias = b.decoder->attention.bias = false;
  a.decoder->attention.key_bias = false;
  EXPECT_EQ(write_spec(validated(a)), write_spec(validated(b)));
  a.decoder->norm.kind = b.decoder->norm.kind = NormKind::rms;
  a.decoder->norm.bias = false;
  EXPECT_EQ(write_spec(validated(a)), write_spec(validated(b)));
  a.decoder->norm = b.decoder->norm = {.kind = NormKind::dyt, .bias = false};
  a.decoder->norm.epsilon = 0.1f;
  EXPECT_EQ(write_spec(validated(a)), write_spec(validated(b)));
}

TEST(ValidSpecs, RefuseInvalidSizes) {
  expect_refused(
      small_decoder(),
      {{[](Spec& s) { s.vocabulary = 0; }, {"vocabulary", "0"}},
       {[](Spec& s) { s.vocabulary = -1; }, {"vocabulary", "-1"}},
       {[](Spec& s) { s.context = 0; }, {"context is 0"}},
       {[](Spec& s) { s.width = 0; }, {"width is 0"}},
       {[](Spec& s) { s.width = int64_t{1} << 40; }, {"width is 1099511627776", "16777216"}},
       {[](Spec& s) { s.width = 13; }, {"heads 6", "width 13", "divisor"}},
       {[](Spec& s) { s.token_types = -1; }, {"token_types is -1"}},
       {[](Spec& s) { s.decoder->layers = -1; }, {"decoder.layers is -1", "0 to 4096"}},
       {[](Spec& s) { s.decoder->attention.heads = 0; }, {"decoder.attention.heads is 0"}},
       {[](Spec& s) { s.decoder->attention.heads = 5; }, {"heads 5", "width 12"}},
       {[](Spec& s) { s.decoder->attention.kv_heads = 4; }, {"kv_heads 4", "heads 6", "divisor"}},
       {[](Spec& s) { s.decoder->attention.kv_heads = -1; }, {"decoder.attention.kv_heads is -1"}},
       {[](Spec& s) { s.decoder->attention.head_width = 257; }, {"head_width is 257", "256"}},
       {[](Spec& s) { s.width = 6 * 257; }, {"257 wide", "256"}},
       {[](Spec& s) { s.decoder->ffn.width = -4; }, {"decoder.ffn.width is -4"}},
       {[](Spec& s) { s.dropout.attention = 1; }, {"dropout.attention is 1", "0.95"}},
       {[](Spec& s) { s.init_deviation = INFINITY; }, {"init_deviation is inf"}},
       {[](Spec& s) { s.decoder->norm.epsilon = -1; }, {"decoder.norm.epsilon is -1"}},
       {[](Spec& s) { s.decoder->norm.epsilon = NAN; }, {"decoder.norm.epsilon is nan"}}});
}

TEST(ValidSpecs, RepeatMixers) {
  Spec s = small_decoder();
  s.decoder->layers = 5;
  s.decoder->mixers = {MixerKind::lstm, MixerKind::attention};
  const Spec valid = validated(s);
  EXPECT_EQ(valid.decoder->mixers,
            (std::vector<MixerKind>{MixerKind::lstm, MixerKind::attention, MixerKind::lstm,
                                    MixerKind::attention, MixerKind::lstm}));
  EXPECT_EQ(valid.decoder->recurrence.width, s.width);
  EXPECT_EQ(write_spec(validated(valid)), write_spec(valid));
  EXPECT_EQ(write_spec(read_spec(write_spec(valid), "spec.json")), write_spec(valid));
  s.decoder->mixers = {MixerKind::attention};  // has the same effect as no mixers
  s.decoder->recurrence.width = 7;
  EXPECT_TRUE(validated(s).decoder->mixers.empty());
  EXPECT_EQ(validated(s).decoder->recurrence.width, 0);
}

TEST(ValidSpecs, CompleteLatentAttention) {
  Spec s = small_decoder();
  s.decoder->mixers = {MixerKind::latent};
  s.decoder->attention.head_width = 6;
  EXPECT_EQ(validated(s).decoder->latent.width, 24);
  EXPECT_EQ(validated(s).decoder->latent.rotary, 0);
  EXPECT_EQ(validated(s).decoder->attention.value_width, 6);
  s.decoder->position.kind = PositionKind::rotary;
  s.decoder->attention.value_width = 5;
  const Spec valid = validated(s);
  EXPECT_EQ(valid.decoder->latent.rotary, 4);
  EXPECT_EQ(valid.decoder->mixers,
            std::vector<MixerKind>(valid.decoder->layers, MixerKind::latent));
  EXPECT_EQ(write_spec(validated(valid)), write_spec(valid));
  EXPECT_EQ(write_spec(read_spec(write_spec(valid), "spec.json")), write_spec(valid));
  s.decoder->mixers.clear();
  s.decoder->latent = {.width = 3, .query_width = 4, .rotary = 5};  // without effect
  EXPECT_EQ(validated(s).decoder->latent.width, 0);
  s.decoder->mixers = {MixerKind::latent};
  expect_error(ErrorKind::InvalidArgument, {"decoder.latent.rotary is 5", "even"},
               [&] { validated(s); });
}

TEST(ValidSpecs, RefuseLayersWithTheSameWeightsThatDiffer) {
  Spec given = small_decoder();
  given.decoder->layers = 4;
  given.decoder->layer_groups = 2;
  EXPECT_EQ(validated(given).decoder->layer_groups, 2);
  expect_refused(
      given,
      {{[](Spec& s) { s.decoder->layer_groups = 3; }, {"layer_groups is 3", "divisor", "4"}},
       {[](Spec& s) { s.decoder->layer_groups = 8; }, {"layer_groups is 8"}},
       {[](Spec& s) { s.decoder->attention.windows = {3}; }, {"layer_groups is 2", "windows"}},
       {[](Spec& s) { s.decoder->mixers = {MixerKind::gru}; }, {"layer_groups", "mixers"}},
       {[](Spec& s) { s.decoder->ffn.experts = {.count = 2, .dense_layers = {1}}; },
        {"layer_groups", "dense_layers"}},
       {[](Spec& s) { s.decoder->first_norm = false; }, {"layer_groups", "first_norm"}}});
}

TEST(ValidSpecs, RefuseAStoredTableOfOtherRotations) {
  Spec given = small_decoder();
  given.decoder->position = {.kind = PositionKind::rotary, .stored = true};
  EXPECT_EQ(validated(given).decoder->position.waves, Waves::halves);
  expect_refused(
      given, {{[](Spec& s) { s.decoder->position.rotary.theta = 500; }, {"stored", "theta 500"}},
              {[](Spec& s) { s.decoder->position.rotary.local_theta = 5; }, {"local_theta"}},
              {[](Spec& s) { s.decoder->mixers = {MixerKind::latent}; }, {"latent attention"}}});
}

TEST(ValidSpecs, RefuseATiedHeadOfAnotherWidth) {
  Spec s = small_encoder();
  s.head = {.tied = false, .transform = true, .transform_width = 5};
  EXPECT_EQ(validated(s).head.transform_width, 5);
  s.head.tied = true;
  expect_error(ErrorKind::InvalidArgument, {"transform_width is 5", "tied"}, [&] { validated(s); });
}

TEST(ValidSpecs, ResetAMissingFeedForwardPart) {
  Spec s = small_decoder();
  s.decoder->ffn.present = false;
  const Spec valid = validated(s);
  s.decoder->ffn.width = 7;
  s.decoder->ffn.gated = true;
  EXPECT_EQ(write_spec(validated(s)), write_spec(valid));
  EXPECT_EQ(write_spec(validated(valid)), write_spec(valid));
}

TEST(ValidSpecs, RefuseInvalidMixers) {
  expect_refused(small_both(), {{[](Spec& s) { s.encoder->mixers = {MixerKind::gru}; },
                                 {"encoder.mixers has a recurrent layer", "attention"}},
                                {[](Spec& s) { s.decoder->mixers.resize(9, MixerKind::rnn); },
                                 {"decoder.mixers has 9 elements", "at most"}}});
  expect_error(ErrorKind::InvalidArgument,
               {"decoder.mixers: mlp", "attention, rnn, gru, lstm, latent"},
               [] { read_spec(R"({"decoder": {"mixers": "mlp"}})", "spec.json"); });
}

TEST(ValidSpecs, RefuseWindowsForMissingLayers) {
  expect_refused(
      small_decoder(),
      {{[](Spec& s) { s.decoder->attention.windows = {-1}; }, {"decoder.attention.windows is -1"}},
       {[](Spec& s) { s.decoder->attention.windows = {1, 2, 3}; },
        {"decoder.attention.windows has 3 numbers", "expected 1, or 2, one per layer"}},
       {[](Spec& s) { s.decoder->attention.global = 1; }, {"decoder.attention.global is 1"}},
       {[](Spec& s) {
          s.decoder->attention.global = 1;
          s.decoder->attention.windows = {0};
        },
        {"decoder.attention.global is 1 without windows"}},
       {[](Spec& s) { s.decoder->attention.softcap = -1; }, {"decoder.attention.softcap is -1"}},
       {[](Spec& s) { s.decoder->attention.scale = -1; }, {"decoder.attention.scale is -1"}}});
}

TEST(ValidSpecs, RefuseInvalidExperts) {
  Spec base = small_decoder();
  base.decoder->ffn.experts.count = 4;
  expect_refused(
      base,
      {{[](Spec& s) { s.decoder->ffn.experts.chosen = 5; }, {"decoder.ffn.experts.chosen is 5"}},
       {[](Spec& s) { s.decoder->ffn.experts.chosen = 0; }, {"decoder.ffn.experts.chosen is 0"}},
       {[](Spec& s) { s.decoder->ffn.experts.dense_layers = {2}; },
        {"decoder.ffn.experts.dense_layers contains layer 2", "at most 1"}},
       {[](Spec& s) { s.decoder->ffn.experts.dense_layers = {-1}; },
        {"decoder.ffn.experts.dense_layers is -1"}},
       {[](Spec& s) { s.decoder->ffn.experts.balance = -1; },
        {"decoder.ffn.experts.balance is -1"}},
       {[](Spec& s) { s.decoder->ffn.experts.groups = 3; },
        {"decoder.ffn.experts.groups 3 does not divide count 4", "divisor"}},
       {[](Spec& s) { s.decoder->ffn.experts.groups_chosen = 2; },
        {"decoder.ffn.experts.groups_chosen is 2", "at most 1"}},
       {[](Spec& s) {
          s.decoder->ffn.experts.groups = 2;
          s.decoder->ffn.experts.chosen = 3;
        },
        {"decoder.ffn.experts.chosen is 3", "at most 2", "chosen groups"}},
       {[](Spec& s) {
          s.decoder->ffn.experts.groups = 4;
          s.decoder->ffn.experts.groups_chosen = 2;
          s.decoder->ffn.experts.selection_bias = true;
        },
        {"decoder.ffn.experts.groups is 4 with selection_bias", "at least 2"}},
       {[](Spec& s) { s.decoder->ffn.experts.scale = 0; }, {"decoder.ffn.experts.scale is 0"}},
       {[](Spec& s) { s.decoder->ffn.experts.shared = -1; },
        {"decoder.ffn.experts.shared is -1"}}});
}

TEST(ValidSpecs, RefuseInvalidPositions) {
  const auto rotary = [](auto change) {
    return [change](Spec& s) {
      s.decoder->position.kind = PositionKind::rotary;
      change(s.decoder->position.rotary);
    };
  };
  expect_refused(
      small_decoder(),
      {{[](Spec& s) { s.decoder->position.kind = static_cast<PositionKind>(7); },
        {"decoder.position.kind is 7"}},
       {[](Spec& s) {
          s.width = 9;
          s.decoder->attention.heads = 3;
          s.decoder->position.kind = PositionKind::sinusoidal;
        },
        {"width is 9", "even", "sinusoids"}},
       {[](Spec& s) {
          s.decoder->position.bias = DistanceBias::relative;
          s.decoder->position.distance = 16;
        },
        {"decoder.position.distance is 16", "more than 16"}},
       {[](Spec& s) { s.decoder->position.bias = DistanceBias::disentangled; },
        {"decoder.position.bias is disentangled", "encoder of tokens"}},
       {rotary([](RotarySpec& r) { r.share = 0.5f; }),
        {"decoder.position.rotary", "rotates 1 of 2", "even"}},
       {rotary([](RotarySpec& r) { r.share = 0; }), {"decoder.position.rotary", "rotates 0"}},
       {rotary([](RotarySpec& r) { r.theta = 0.5f; }), {"decoder.position.rotary.theta is 0.5"}},
       {rotary([](RotarySpec& r) { r.scaling = RotaryScaling::longrope; }),
        {"decoder.position.rotary has 0 factors", "expected 1"}},
       {rotary([](RotarySpec& r) {
          r.scaling = RotaryScaling::longrope;
          r.short_factors = {1};
          r.long_factors = {1, 2};
        }),
        {"decoder.position.rotary has 2 factors", "expected 1"}},
       {rotary([](RotarySpec& r) { r.short_factors = {1}; }),
        {"decoder.position.rotary has 1 factors", "expected 0"}},
       {rotary([](RotarySpec& r) {
          r.scaling = RotaryScaling::longrope;
          r.original_context = 1;
          r.factor = 2;
          r.short_factors = r.long_factors = {1};
        }),
        {"decoder.position.rotary.original_context is 1", "attention_factor"}},
       {rotary([](RotarySpec& r) { r.scaling = RotaryScaling::dynamic; }),
        {"decoder.position.rotary rotates 2 numbers", "at least 4 for dynamic"}},
       {rotary([](RotarySpec& r) {
          r.scaling = RotaryScaling::llama3;
          r.low_frequency = r.high_frequency = 2;
        }),
        {"decoder.position.rotary.high_frequency is 2", "more than 2, low_frequency"}},
       {rotary([](RotarySpec& r) {
          r.scaling = RotaryScaling::yarn;
          r.theta = 1;
        }),
        {"decoder.position.rotary.theta is 1", "more than 1"}}});
}

TEST(ValidSpecs, RefuseInvalidLayers) {
  expect_refused(
      small_decoder(),
      {{[](Spec& s) { s.decoder->parallel = s.decoder->placement.sum = true; },
        {"decoder.parallel", "sum true"}},
       {[](Spec& s) { s.decoder->parallel = s.decoder->placement.output = true; }, {"parallel"}},
       {[](Spec& s) { s.decoder->parallel = true, s.decoder->placement.input = false; },
        {"parallel"}},
       {[](Spec& s) {
          s.encoder = small_stack();
          s.decoder->parallel = true;
        },
        {"decoder.parallel", "encoder"}},
       {[](Spec& s) {
          s.decoder->norm.kind = NormKind::rms;
          s.decoder->norm.epsilon_outside = true;
        },
        {"decoder.norm.epsilon_outside", "layer"}},
       {[](Spec& s) {
          s.decoder->norm.kind = NormKind::dyt;
          s.decoder->norm.epsilon_outside = true;
        },
        {"decoder.norm.epsilon_outside", "layer"}},
       {[](Spec& s) { s.decoder->norm.alpha = 0; }, {"decoder.norm.alpha is 0"}},
       {[](Spec& s) { s.decoder->residual_scale = 0; }, {"decoder.residual_scale is 0"}},
       {[](Spec& s) {
          s.decoder->residual = false;
          s.decoder->residual_scale = 2;
        },
        {"decoder.residual_scale is 2 without residual", "expected 1"}},
       {[](Spec& s) { s.decoder->init_scale = -1; }, {"decoder.init_scale is -1"}},
       {[](Spec& s) {
          s.decoder->residual = false;
          s.decoder->zero_outputs = true;
        },
        {"decoder.zero_outputs without residual", "expected residual"}},
       {[](Spec& s) {
          s.decoder->init_scale = 0.5f;
          s.decoder->zero_outputs = true;
        },
        {"decoder.init_scale is 0.5 with zero_outputs", "expected one of them"}},
       {[](Spec& s) {
          s.decoder->mixers = {MixerKind::latent};
          s.decoder->attention.value_residual = 0.5f;
        },
        {"decoder.attention.value_residual is 0.5 with latent attention", "expected 0"}},
       {[](Spec& s) { s.decoder->attention.value_residual = 2; },
        {"decoder.attention.value_residual is 2"}}});
}

TEST(ValidSpecs, NameTheInvalidStack) {
  expect_refused(
      small_encoder(),
      {{[](Spec& s) { s.encoder->layers = -1; }, {"encoder.layers is -1"}},
       {[](Spec& s) { s.encoder->attention.windows = {1, 2, 3}; }, {"encoder.attention.windows"}},
       {[](Spec& s) { s.encoder->attention.global = 2; }, {"encoder.attention.global"}},
       {[](Spec& s) { s.encoder->ffn.experts = {.count = 1}; }, {"encoder.ffn.experts.chosen"}}});
}

TEST(ValidSpecs, RefuseInvalidStacksAndInputs) {
  expect_refused(small_decoder(),
                 {{[](Spec& s) { s.decoder.reset(); }, {"no stack", "an encoder"}},
                  {[](Spec& s) { s.input.kind = InputKind::image; }, {"input", "encoder"}},
                  {[](Spec& s) { s.source_vocabulary = 5; },
                   {"source_vocabulary is 5", "an encoder and a decoder"}}});
  expect_refused(small_encoder(),
                 {{[](Spec& s) { s.source_vocabulary = 5; }, {"source_vocabulary is 5"}},
                  {[](Spec& s) {
                     s.input.kind = InputKind::image;
                     s.head = {.kind = HeadKind::pooled};
                     s.input.patch = 15;
                   },
                   {"input.patch 15", "input.size 224"}},
                  {[](Spec& s) { s.input.kind = InputKind::image; },
                   {"head.kind is language_model", "tokens"}},
                  {[](Spec& s) {
                     s.input.kind = InputKind::audio;
                     s.head = {.kind = HeadKind::pooled};
                     s.token_types = 2;
                   },
                   {"token_types is 2", "tokens"}}});
  expect_refused(small_both(), {{[](Spec& s) {
                                   s.input.kind = InputKind::audio;
                                   s.source_vocabulary = 5;
                                 },
                                 {"source_vocabulary is 5"}},
                                {[](Spec& s) {
                                   s.input.kind = InputKind::audio;
                                   s.vocabulary = 0;
                                 },
                                 {"vocabulary is 0"}}});
}

TEST(ValidSpecs, RefuseHeadsWithoutTheirLabels) {
  expect_refused(
      small_decoder(),
      {{[](Spec& s) { s.head.labels = 2; }, {"head.labels is 2", "expected 0"}},
       {[](Spec& s) { s.head = {.kind = HeadKind::pooled, .labels = 2}; }, {"head.labels is 2"}},
       {[](Spec& s) { s.head.kind = HeadKind::sequence; }, {"head.labels is 0"}},
       {[](Spec& s) { s.head.kind = HeadKind::token; }, {"head.labels is 0"}},
       {[](Spec& s) { s.head.kind = HeadKind::span; }, {"head.labels is 0"}},
       {[](Spec& s) { s.head.softcap = -1; }, {"head.softcap is -1"}}});
}

}  // namespace
}  // namespace fovea::model
