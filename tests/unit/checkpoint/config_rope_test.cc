#include <utility>

#include "base/json.h"
#include "checkpoint/config.h"
#include "support/expect_error.h"

namespace fovea::model {
namespace {

struct Rope {
  int64_t context = 0;
  RotarySpec rotary;
};

Rope read(const nlohmann::json& json) {
  Rope rope;
  Config io(json, "config.json");
  io.rope(rope.context, rope.rotary, {});
  return rope;
}

nlohmann::json written(Rope rope) {
  Config io;
  io.rope(rope.context, rope.rotary, {});
  return io.written();
}

TEST(ConfigRope, DynamicScalingStretchesTheContext) {
  const nlohmann::json scaling = {{"rope_type", "dynamic"}, {"factor", 4.0}, {"rope_theta", 500.0}};
  const Rope rope = read({{"max_position_embeddings", 2048}, {"rope_parameters", scaling}});
  EXPECT_EQ(rope.rotary.scaling, RotaryScaling::dynamic);
  EXPECT_EQ(rope.rotary.original_context, 2048);
  EXPECT_EQ(rope.context, 8192);
  const nlohmann::json again = written(rope);
  EXPECT_EQ(again["max_position_embeddings"], 2048);
  EXPECT_EQ(again["rope_parameters"], scaling);
  EXPECT_EQ(again["rope_scaling"], nlohmann::json({{"rope_type", "dynamic"}, {"factor", 4.0}}));
}

TEST(ConfigRope, LongropesFactorIsTheRatioOfTheContexts) {
  nlohmann::json scaling = {{"type", "longrope"},
                            {"short_factor", {1.0}},
                            {"long_factor", {2.0}},
                            {"original_max_position_embeddings", 1024}};
  const nlohmann::json config = {{"max_position_embeddings", 4096}, {"rope_scaling", scaling}};
  EXPECT_EQ(read(config).rotary.factor, 4);
  EXPECT_EQ(read(config).rotary.original_context, 1024);
  scaling["factor"] = 3.0;
  EXPECT_EQ(read({{"rope_scaling", scaling}}).rotary.factor, 3);
}

TEST(ConfigRope, ReadsBothSpellings) {
  const nlohmann::json scaling = {{"rope_type", "linear"}, {"factor", 2.0}};
  nlohmann::json now = scaling;
  now["rope_theta"] = 77.0;
  const Rope old = read({{"rope_theta", 77.0}, {"rope_scaling", scaling}});
  EXPECT_EQ(written(old), written(read({{"rope_parameters", now}})));
  EXPECT_EQ(old.context, 2048);
  EXPECT_EQ(old.rotary.theta, 77);
}

// The base of layers with a window, as Gemma 3 has it: a default of the family, or an entry of
// rope_parameters.
TEST(ConfigRope, OnlyAnEntryForSlidingAttentionChangesTheLocalTheta) {
  using nlohmann::json;
  const auto local = [](const json& config, bool by_layer_type) {
    Rope rope;
    rope.rotary.local_theta = 5000;
    Config io(config, "config.json");
    io.rope(rope.context, rope.rotary, {.theta = 9, .by_layer_type = by_layer_type});
    return std::pair(rope.rotary.theta, rope.rotary.local_theta);
  };
  const json full = {{"rope_type", "default"}, {"rope_theta", 77.0}};
  EXPECT_EQ(local({{"rope_theta", 77.0}}, false), std::pair(77.0f, 5000.0f));
  EXPECT_EQ(local({{"rope_parameters", full}}, false), std::pair(77.0f, 5000.0f));
  EXPECT_EQ(local({{"rope_parameters", {{"full_attention", full}}}}, true),
            std::pair(77.0f, 5000.0f));
  const json both = {{"full_attention", full}, {"sliding_attention", {{"rope_theta", 3.0}}}};
  EXPECT_EQ(local({{"rope_parameters", both}}, true), std::pair(77.0f, 3.0f));
  const json scaled = {{"sliding_attention", {{"rope_type", "linear"}, {"factor", 2.0}}}};
  expect_error(ErrorKind::Unsupported,
               {"rope_parameters.sliding_attention scales positions; expected rope_type default"},
               [&] { local({{"rope_parameters", scaled}}, true); });
}

// transformers completes rope_parameters from the root of the file.
TEST(ConfigRope, ValuesOfTheRootCompleteTheParameters) {
  const Rope rope = read({{"rope_theta", 77.0},
                          {"partial_rotary_factor", 0.5},
                          {"rope_parameters", {{"rope_type", "default"}}}});
  EXPECT_EQ(rope.rotary.theta, 77);
  EXPECT_EQ(rope.rotary.share, 0.5f);
}

// The values are those of transformers: 0.1 * m * ln(factor) + 1 for each multiple m, divided.
TEST(ConfigRope, MultiplesOfYarnsFactor) {
  const auto factor = [](const nlohmann::json& more) {
    nlohmann::json scaling = {{"rope_type", "yarn"}, {"factor", 4.0}};
    scaling.update(more);
    return read({{"rope_parameters", scaling}}).rotary.attention_factor;
  };
  EXPECT_FLOAT_EQ(factor({{"mscale", 1.0}, {"mscale_all_dim", 0.5}}), 1.0648216f);
  EXPECT_FLOAT_EQ(factor({{"mscale", 0.7}, {"mscale_all_dim", 0.7}}), 1);
  EXPECT_EQ(factor({{"mscale", 0.7}}), 0);  // alone it is ignored: the factor follows from `factor`
  EXPECT_EQ(factor({{"mscale", 1.0}, {"mscale_all_dim", 0.5}, {"attention_factor", 2.0}}), 2);
  expect_error(ErrorKind::Unsupported, {"truncate is not known"},
               [&] { factor({{"truncate", 1}}); });
  const auto whole = [&](bool truncate) {
    const nlohmann::json scaling = {
        {"rope_type", "yarn"}, {"rope_theta", 1e4}, {"factor", 4.0}, {"truncate", truncate}};
    return read({{"rope_parameters", scaling}}).rotary.whole_pairs;
  };
  EXPECT_TRUE(whole(true));
  EXPECT_FALSE(whole(false));
}

TEST(ConfigRope, RefusesUnknownScalings) {
  expect_error(ErrorKind::BadFile, {"rope_scaling.rope_type is 5; expected a name"},
               [] { read({{"rope_scaling", {{"rope_type", 5}}}}); });
  expect_error(ErrorKind::BadFile, {"rope_scaling is 5; expected an object"},
               [] { read({{"rope_scaling", 5}}); });
  expect_error(ErrorKind::Unsupported, {"rope_scaling.rope_type is \"spiral\""},
               [] { read({{"rope_scaling", {{"type", "spiral"}}}}); });
}

// transformers ignores them there, and computed with its defaults.
TEST(ConfigRope, RefusesFlatParametersOfAModelWithLayerTypes) {
  const auto read_typed = [](const nlohmann::json& parameters) {
    const nlohmann::json json = {{"rope_parameters", parameters}};
    Config io(json, "config.json");
    Rope rope;
    io.rope(rope.context, rope.rotary, {.by_layer_type = true});
    return rope.rotary.theta;
  };
  expect_error(ErrorKind::BadFile,
               {"config.json: rope_parameters is", "full_attention and sliding_attention"},
               [&] { read_typed({{"rope_type", "default"}, {"rope_theta", 5.0}}); });
  const nlohmann::json full = {{"rope_type", "default"}, {"rope_theta", 7.0}};
  EXPECT_EQ(read_typed({{"rope_theta", 5.0}, {"full_attention", full}}), 7);
  EXPECT_EQ(read_typed(nlohmann::json::object()), 10000);
}

}  // namespace
}  // namespace fovea::model
