// Regression: 41,000 levels of nesting in a JSON string within a body crashed the server, and a
// body of 190,000 keys kept the server busy for five minutes.

#include "base/ordered_json.h"

#include <gtest/gtest.h>

namespace fovea {
namespace {

using Json = nlohmann::ordered_json;

std::string nested(int depth) {
  const auto count = static_cast<size_t>(depth);
  return std::string(count, '[') + std::string(count, ']');
}

std::string object_of(size_t keys) {
  std::string text = "{";
  for (size_t i = 0; i < keys; ++i) {
    text += std::string(i > 0 ? "," : "") + '"' + std::to_string(i) + "\":0";
  }
  return text + "}";
}

void refused(const std::string& text, const std::string& why, const std::string& code) {
  try {
    parse_ordered_json(text, "body");
    ADD_FAILURE() << text.substr(0, 100);
  } catch (const JsonFault& fault) {
    const std::string message = fault.what();
    EXPECT_EQ(message.substr(0, 6), "body: ");
    EXPECT_NE(message.find(why), std::string::npos) << message;
    EXPECT_EQ(message.find('\n'), std::string::npos) << message;
    EXPECT_LT(message.size(), 300u);
    EXPECT_EQ(fault.code(), code);
  }
}

TEST(JsonText, ReadsEveryKindOfValueInOrder) {
  const std::string text =
      R"({"z":null,"a":[true,-1,18446744073709551615,1.5,"text",{}],"b":{"c":{"d":[]}}})";
  EXPECT_EQ(parse_ordered_json(text, "body").dump(), text);
  EXPECT_EQ(parse_ordered_json(" 5 ", "body"), 5);
}

TEST(JsonText, LimitsTheDepth) {
  EXPECT_EQ(parse_ordered_json(nested(kMostDepth), "body").dump(), nested(kMostDepth));
  refused(nested(kMostDepth + 1), "64 deep", "too_deep");
  refused(std::string(1'000'000, '['), "64 deep", "too_deep");
  std::string objects;
  for (int i = 0; i < 100'000; ++i) objects += "{\"a\":";
  refused(objects, "64 deep", "too_deep");
}

TEST(JsonText, LimitsTheNumberOfKeys) {
  EXPECT_EQ(parse_ordered_json(object_of(kMostKeys), "body").size(), kMostKeys);
  refused(object_of(kMostKeys + 1), "100000 keys", "too_many_keys");
  std::string many = "[";  // the limit applies to all objects together
  for (size_t i = 0; i <= kMostKeys; ++i) many += "{\"a\":0},";
  refused(many + "0]", "100000 keys", "too_many_keys");
}

TEST(JsonText, RefusesInvalidJson) {
  for (const char* text : {"", "{", "[1,]", "{\"a\" 1}", "nul", "1e400", "\"\xff\"", "{} x"}) {
    refused(text, "not JSON", "invalid_json");
  }
  refused(std::string("{}\0", 3), "NUL", "invalid_json");
  refused("\"" + std::string(100'000, 'x'), "not JSON", "invalid_json");
  refused(R"({"a":1,"b":{"a":2},"a":3})", "duplicate key \"a\"", "invalid_json");
  refused("{\"" + std::string(9000, 'k') + "\":1,\"" + std::string(9000, 'k') + "\":1}",
          "duplicate key", "invalid_json");
}

}  // namespace
}  // namespace fovea
