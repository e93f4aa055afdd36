#include "base/json.h"
#include "checkpoint/config.h"
#include "support/expect_error.h"

namespace fovea {
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

TEST(ConfigRope, RefusesUnknownScalings) {
  expect_error(ErrorKind::BadFile, {"rope_scaling.rope_type is 5; expected a name"}, [] {
    read({{"rope_scaling", {{"rope_type", 5}}}});
  });
  expect_error(ErrorKind::BadFile, {"rope_scaling is 5; expected an object"}, [] {
    read({{"rope_scaling", 5}});
  });
  expect_error(ErrorKind::Unsupported, {"rope_scaling.rope_type is \"spiral\""}, [] {
    read({{"rope_scaling", {{"type", "spiral"}}}});
  });
}

}  // namespace
}  // namespace fovea
