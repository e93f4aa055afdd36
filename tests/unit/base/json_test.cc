#include "base/json.h"

#include "base/files.h"
#include "support/expect_error.h"
#include "support/temporary_folder.h"

namespace fovea {
namespace {

using nlohmann::json;

std::string repeat(const std::string& text, int times) {
  std::string all;
  for (int i = 0; i < times; ++i) all += text;
  return all;
}

void expect_refused(const std::string& text, std::initializer_list<std::string> parts) {
  SCOPED_TRACE(text.substr(0, 60));
  expect_error(ErrorKind::BadFile, parts, [&] { parse_json(text, "config.json"); });
}

TEST(Json, ReadsEveryKindOfValue) {
  const json value = parse_json(
      R"( {"a": [1, -2, 2.5, true, false, null, "\u00e9"], "b": {"c": {}}, "": []} )", "x");
  EXPECT_EQ(value["a"], json({1, -2, 2.5, true, false, nullptr, "\xc3\xa9"}));
  EXPECT_TRUE(value["b"]["c"].is_object());
  EXPECT_TRUE(value[""].is_array());
  EXPECT_EQ(parse_json("7", "x"), 7);
  EXPECT_EQ(parse_json("18446744073709551615", "x"), UINT64_MAX);
}

TEST(Json, AgreesWithNlohmann) {
  const std::string text =
      R"([{"k":[[],{},[{"z":[1,[2,[3]]]}]],"l":"\"\\\n\ud83d\ude00"},-0.0,1e-320,1E5,[null]])";
  EXPECT_EQ(parse_json(text, "x"), json::parse(text));
}

TEST(Json, RefusesInvalidJson) {
  expect_refused("", {"config.json: ", "(byte 0, line 1, column 1)"});
  expect_refused("{", {"unexpected end of input"});
  expect_refused("{\"a\": 1}\n x", {"invalid literal", "line 2"});
  expect_refused("{\"a\": 1} {}", {"expected end of input"});
  expect_refused("{\"a\": 1,}", {"config.json: "});
  expect_refused("{'a': 1}", {"config.json: "});
  expect_refused("[1, 2", {"expected ']'"});
  expect_refused("[01]", {"config.json: "});
  expect_refused("// comment\n1", {"config.json: "});
  expect_refused("{\"a\": NaN}", {"invalid literal"});
  expect_refused("[Infinity]", {"invalid literal"});
  expect_refused("\"a\nb\"", {"control character"});
}

TEST(Json, RefusesNulAndInvalidUtf8) {
  expect_refused(std::string("{}\0junk", 7), {"a NUL byte (byte 2, line 1, column 3)"});
  expect_refused(std::string("\0", 1), {"a NUL byte (byte 0"});
  expect_refused("[\"\xff\"]", {"UTF-8"});
  expect_refused("[\"\xc0\xaf\"]", {"UTF-8"});          // overlong
  expect_refused("[\"\xed\xa0\x80\"]", {"UTF-8"});      // a surrogate
  expect_refused("[\"\xf4\x90\x80\x80\"]", {"UTF-8"});  // beyond Unicode
  expect_refused("[\"\\ud800\"]", {"surrogate"});
  expect_refused("[\xc3\xa9]", {"config.json: "});
}

TEST(Json, RefusesNumbersBeyondDouble) {
  expect_refused("[1e400]", {"number overflow"});
  expect_refused("[-1e400]", {"number overflow"});
  expect_refused("[" + repeat("9", 400) + "]", {"number overflow"});
}

TEST(Json, RefusesDuplicateKeysAtAnyDepth) {
  expect_refused("{\"a\": 1, \"a\": 1}", {"duplicate key \"a\" (byte 12,"});
  expect_refused("[{\"x\": {\"b\": 1, \"c\": 2, \"b\": 3}}]", {"duplicate key \"b\""});
  expect_refused("{\"a\": 1, \"\\u0061\": 1}", {"duplicate key \"a\""});
  EXPECT_NO_THROW(parse_json("{\"a\": {\"a\": {\"a\": 1}}}", "x"));
}

TEST(Json, RefusesDeepNesting) {
  EXPECT_NO_THROW(parse_json(repeat("[", 64) + repeat("]", 64), "x"));
  expect_refused(repeat("[", 65) + repeat("]", 65),
                 {"nested too deeply (byte 65", "at most 64 levels"});
  expect_refused(repeat("[", 100000), {"nested too deeply"});
  expect_refused(repeat("{\"a\":", 100000), {"nested too deeply", "at most 64 levels"});
}

TEST(Json, QuotesLittleTextInErrors) {
  try {
    parse_json("[\"" + repeat("x", 100000) + "\x1b[31m", "config.json");
    FAIL();
  } catch (const Error& error) {
    EXPECT_LT(std::string(error.what()).size(), 400u);
    EXPECT_EQ(std::string(error.what()).find('\x1b'), std::string::npos);
  }
}

TEST(Json, ReadsAFile) {
  const TemporaryFolder folder;
  write_file_atomically(folder / "config.json", "{\"n\": 1}\n");
  EXPECT_EQ(read_json(folder / "config.json")["n"], 1);
  expect_error(ErrorKind::BadFile, {"none.json: is missing"},
               [&] { read_json(folder / "none.json"); });
}

TEST(Json, DumpsStably) {
  nlohmann::ordered_json ordered;
  ordered["z"] = 1;
  ordered["a"] = {1.5, nullptr};
  EXPECT_EQ(pretty(ordered), "{\n  \"z\": 1,\n  \"a\": [\n    1.5,\n    null\n  ]\n}\n");
  EXPECT_EQ(pretty(parse_json("{\"z\":1,\"a\":2}", "x")), "{\n  \"a\": 2,\n  \"z\": 1\n}\n");
}

TEST(Json, GettersCheckTypeAndRange) {
  const json config = parse_json(
      R"({"n":12,"f":0.5,"b":true,"s":"gelu","null":null,"big":9223372036854775808,"neg":-1,)"
      R"("list":[1,2]})",
      "x");
  EXPECT_EQ(get_int(config, "n", "c", 1, 12), 12);
  EXPECT_EQ(get_float(config, "f", "c"), 0.5);
  EXPECT_EQ(get_float(config, "n", "c"), 12.0);
  EXPECT_TRUE(get_bool(config, "b", "c"));
  EXPECT_EQ(get_string(config, "s", "c"), "gelu");
  EXPECT_EQ(find_int(config, "absent", "c"), std::nullopt);
  EXPECT_EQ(find_int(config, "null", "c"), std::nullopt);
  EXPECT_EQ(find_float(config, "absent", "c").value_or(2.0), 2.0);
  EXPECT_EQ(find_bool(config, "null", "c").value_or(true), true);
  EXPECT_EQ(find_string(config, "absent", "c"), std::nullopt);

  const auto refused = [&](std::initializer_list<std::string> parts, auto&& action) {
    expect_error(ErrorKind::BadFile, parts, action);
  };
  refused({"config.json: n_layer is missing; expected an integer from 1 to 99"},
          [&] { get_int(config, "n_layer", "config.json", 1, 99); });
  refused({"c: n is 12; expected an integer from 1 to 11"},
          [&] { find_int(config, "n", "c", 1, 11); });
  refused({"c: neg is -1; expected an integer of at least 0"},
          [&] { get_int(config, "neg", "c", 0); });
  refused({"c: f is 0.5; expected an integer"}, [&] { get_int(config, "f", "c"); });
  refused({"c: big is 9223372036854775808; expected an integer"},
          [&] { get_int(config, "big", "c"); });
  refused({"c: null is null; expected an integer"}, [&] { get_int(config, "null", "c"); });
  refused({"c: s is \"gelu\"; expected a number"}, [&] { get_float(config, "s", "c"); });
  refused({"c: n is 12; expected a number from 0 to 1"},
          [&] { get_float(config, "n", "c", 0.0, 1.0); });
  refused({"c: n is 12; expected true or false"}, [&] { get_bool(config, "n", "c"); });
  refused({"c: list is an array of 2 elements; expected a string"},
          [&] { find_string(config, "list", "c"); });
  refused({"c: is an array of 2 elements; expected an object with the key n"},
          [&] { get_int(config["list"], "n", "c"); });
}

}  // namespace
}  // namespace fovea
