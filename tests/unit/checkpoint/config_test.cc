#include "checkpoint/config.h"

#include "base/json.h"
#include "support/expect_error.h"

namespace fovea::model {
namespace {

TEST(Config, ReadsAndWritesWithOneDeclaration) {
  const auto lines = [](Config& io, int64_t& width, float& share, bool& tied, Activation& f) {
    io("width", width);
    io("share", share, 0.1f);
    io("tied", tied, true);
    io("activation", f, "gelu_new");
  };
  int64_t width = 24;
  float share = 0.3f;
  bool tied = false;
  Activation f = Activation::silu;
  Config writer;
  lines(writer, width, share, tied, f);
  EXPECT_EQ(writer.written().dump(),
            R"({"width":24,"share":0.3,"tied":false,"activation":"silu"})");

  width = 0, share = 0, tied = true, f = Activation::relu;
  const nlohmann::json json = writer.written();
  Config reader(json, "f");
  lines(reader, width, share, tied, f);
  EXPECT_EQ(width, 24);
  EXPECT_EQ(share, 0.3f);
  EXPECT_FALSE(tied);
  EXPECT_EQ(f, Activation::silu);

  const nlohmann::json little = {{"width", 7}, {"share", nullptr}};
  Config defaults(little, "f");
  lines(defaults, width, share, tied, f);
  EXPECT_EQ(share, 0.1f);
  EXPECT_TRUE(tied);
  EXPECT_EQ(f, Activation::gelu_tanh);
}

TEST(Config, NamesInvalidValues) {
  const nlohmann::json json = {{"n", 1.5}, {"f", "mish"}, {"x", 2}, {"b", 1}, {"scale", false}};
  Config io(json, "config.json");
  int64_t n = 0;
  float x = 0;
  bool b = false;
  Activation f{};
  expect_error(ErrorKind::BadFile, {"config.json: n is 1.5; expected an integer"},
               [&] { io("n", n); });
  expect_error(ErrorKind::BadFile, {"config.json: m is missing"}, [&] { io("m", n); });
  expect_error(ErrorKind::Unsupported, {"config.json: f is \"mish\""}, [&] { io("f", f, "relu"); });
  expect_error(ErrorKind::BadFile, {"x is 2; expected a number from 0 to 1"},
               [&] { io("x", x, 0); });
  expect_error(ErrorKind::BadFile, {"b is 1; expected true or false"}, [&] { io("b", b, true); });
  expect_error(ErrorKind::Unsupported, {"scale is false", "expected true"},
               [&] { io.only("scale", true); });
}

TEST(Config, RefusesUnknownKeysUnlessHarmless) {
  const nlohmann::json json = {{"use_cache", true}, {"summary_type", "x"}, {"rope", 1}};
  Config io(json, "config.json");
  expect_error(ErrorKind::Unsupported, {"config.json: rope is not known"},
               [&] { io.refuse_unknown({"summary_type"}); });
  EXPECT_NO_THROW(io.refuse_unknown({"summary_type", "rope"}));
}

TEST(Config, MustBeAnObject) {
  const nlohmann::json json = {1, 2};
  expect_error(ErrorKind::BadFile, {"config.json: not an object"},
               [&] { Config(json, "config.json"); });
}

}  // namespace
}  // namespace fovea::model
