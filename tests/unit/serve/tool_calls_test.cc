#include "serve/tool_calls.h"

#include <gtest/gtest.h>

namespace fovea::serve {
namespace {

const CallRules kRules = {{"f", "g"}, true};

TEST(ToolCalls, ParsesCommonFormats) {
  EXPECT_EQ(find_tool_calls(R"( {"name": "f", "parameters": {}})", kRules).calls.size(), 1u);
  const std::string two = R"([{"name": "f", "arguments": "{}"}, {"name": "g", "arguments": {}}])";
  EXPECT_EQ(find_tool_calls(two, kRules).calls.size(), 2u);
  const ToolCalls after =
      find_tool_calls(R"([Note] <tool_call>{"name": "f", "arguments": {}}</tool_call>)", kRules);
  EXPECT_EQ(after.calls.size(), 1u);
  EXPECT_EQ(after.text, "[Note]");
}

// {"name": "Alice", "parameters": ...} was a call of Alice, and the arguments of a call could be 0.
TEST(ToolCalls, LeavesOtherTextsAsTheyAre) {
  for (const std::string& text :
       {std::string("{\"a\": 1}"), std::string("[]"), std::string("{\"name\": \"f\""),
        std::string("<tool_call>f</tool_call>"), std::string("<tool_call>"), std::string("hello"),
        std::string(R"({"name": "Alice", "parameters": {"age": 3}})"),
        std::string(R"({"name": "f", "arguments": 0})"),
        std::string(R"({"name": "f", "arguments": "x"})"),
        std::string(R"(<tool_call>{"name": "h", "arguments": {}}</tool_call>)"),
        std::string(100'000, '[')}) {
    const ToolCalls found = find_tool_calls(text, kRules);
    EXPECT_TRUE(found.calls.empty()) << text.substr(0, 50);
    EXPECT_EQ(found.text, text);
  }
}

TEST(ToolCalls, HasIdsOfNineLettersAndDigits) {
  const std::string call = R"({"name": "f", "arguments": {}})";
  EXPECT_EQ(find_tool_calls(call, kRules).calls[0]["id"].get<std::string>().size(), 9u);
  const CallRules other = {{"f"}, false};
  EXPECT_EQ(find_tool_calls(call, other).calls[0]["id"].get<std::string>().substr(0, 5), "call_");
  EXPECT_EQ(short_call_id("call_1"), short_call_id("call_1"));
  EXPECT_NE(short_call_id("call_1"), short_call_id("call_2"));
}

// A text in brackets was held back to its end.
TEST(ToolCallFilter, StreamsTextsInBrackets) {
  const auto streamed = [](const std::vector<std::string>& pieces) {
    ToolCallFilter filter;
    std::string text;
    for (const std::string& piece : pieces) text += filter.add(piece);
    return text;
  };
  EXPECT_EQ(streamed({" [", "Note] ", "so"}), " [Note] so");
  EXPECT_EQ(streamed({"{\"", "a\"", ": 1}"}), "{\"a\": 1}");
  EXPECT_EQ(streamed({"[", "{\"na", "me\": \"f\"}]"}), "");
  EXPECT_EQ(streamed({"a <tool", "_call>{"}), "a ");
}

TEST(CallSchema, HasArgumentsThatAreAnObject) {
  const auto schema_of = [](const Json& parameters) {
    const Json tools = {
        {{"type", "function"}, {"function", {{"name", "f"}, {"parameters", parameters}}}}};
    return Json::parse(call_schema(tools, ""))["anyOf"][0]["properties"]["arguments"];
  };
  EXPECT_EQ(schema_of(nullptr), (Json{{"type", "object"}}));
  EXPECT_EQ(schema_of(Json::object()), (Json{{"type", "object"}}));
  EXPECT_EQ(schema_of({{"$ref", "#"}}), (Json{{"$ref", "#"}}));
  EXPECT_THROW(schema_of(1), ApiError);
}

}  // namespace
}  // namespace fovea::serve
