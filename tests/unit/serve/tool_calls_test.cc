#include "serve/generation/tool_calls.h"

#include <gtest/gtest.h>

namespace fovea::serve {
namespace {

const text::MessageRules kRules = {
    .format = {}, .functions = {{.name = "f", .parameters = ""}, {.name = "g", .parameters = ""}}};

TEST(ToolCalls, ParsesCommonFormats) {
  const auto read = [](const std::string& text) { return message_of(text, kRules, true); };
  EXPECT_EQ(read(R"( {"name": "f", "parameters": {}})").calls.size(), 1u);
  const std::string two = R"([{"name": "f", "arguments": {}}, {"name": "g", "arguments": {}}])";
  EXPECT_EQ(read(two).calls.size(), 2u);
}

// {"name": "Alice", "parameters": ...} was a call of Alice, and the arguments of a call could be 0.
TEST(ToolCalls, LeavesOtherTextsAsTheyAre) {
  for (const std::string& text :
       {std::string("{\"a\": 1}"), std::string("[]"), std::string("{\"name\": \"f\""),
        std::string("hello"), std::string(R"({"name": "Alice", "parameters": {"age": 3}})"),
        std::string(R"({"name": "f", "arguments": 0})"), std::string(100'000, '[')}) {
    const Message message = message_of(text, kRules, true);
    EXPECT_TRUE(message.calls.empty()) << text.substr(0, 50);
    EXPECT_EQ(message.content, text);
  }
}

TEST(ToolCalls, HasIdsOfNineLettersAndDigits) {
  ResponseIds ids;
  EXPECT_EQ(new_call_id(true, ids).size(), 9u);
  EXPECT_EQ(new_call_id(false, ids).substr(0, 5), "call_");
  EXPECT_EQ(short_call_id("call_1"), short_call_id("call_1"));
  EXPECT_NE(short_call_id("call_1"), short_call_id("call_2"));
}

TEST(CallSchema, HasArgumentsThatAreAnObject) {
  const auto schema_of = [](const Json& parameters) {
    const Json tools = {
        {{"type", "function"}, {"function", {{"name", "f"}, {"parameters", parameters}}}}};
    return Json::parse(call_schema(functions_of(tools)))["anyOf"][0]["properties"]["arguments"];
  };
  EXPECT_EQ(schema_of(nullptr), (Json{{"type", "object"}}));
  EXPECT_EQ(schema_of(Json::object()), (Json{{"type", "object"}}));
  EXPECT_EQ(schema_of({{"$ref", "#"}}), (Json{{"$ref", "#"}}));
  EXPECT_THROW(schema_of(1), ApiError);
}

}  // namespace
}  // namespace fovea::serve
