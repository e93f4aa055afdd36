#include "calls/call_grammar.h"

#include <gtest/gtest.h>

#include "base/ordered_json.h"
#include "unit/calls/message.h"
#include "unit/grammar/reader.h"

namespace fovea::text {
namespace {

using nlohmann::ordered_json;

// Arguments with a constant of each kind at each depth.
const char* const kParameters = R"({"type": "object", "properties": {
    "a": {"type": ["boolean", "null"]},
    "b": {"type": "array", "items": {"type": ["boolean", "integer", "null"]}},
    "c": {"type": "object", "properties": {"x": {}}, "required": ["x"]},
    "d": {"enum": [[true, "true \"null\"", {"k": null}], false]}}})";

MessageRules rules_of(const std::string& format) {
  MessageRules rules;
  rules.format.calls = find_call_format(format);
  rules.functions = {{"f", kParameters, true}};
  rules.enforced = true;
  return rules;
}

std::string call_of(const CallFormat& format, const std::string& arguments) {
  return format.head() + "f" + format.arguments + arguments + format.call_end + format.end;
}

Reader reader_of(const MessageRules& rules) {
  std::vector<std::string> warnings;
  return Reader(
      call_grammar(*rules.format.calls, rules.functions, true, Grammar::Bytes().set(), warnings));
}

// Constants within lists and objects were enforced in the words of JSON.
TEST(CallGrammar, HasConstantsOfPythonAtEachDepth) {
  for (const char* const format : {"pythonic", "llama4", "lfm2", "olmo3"}) {
    const MessageRules rules = rules_of(format);
    Reader reader = reader_of(rules);
    for (const auto& [arguments, json] :
         {std::pair<std::string, std::string>{
              R"(a=True, b=[None, 1, False], c={"x": [True, {"y": None}]})",
              R"({"a": true, "b": [null, 1, false], "c": {"x": [true, {"y": null}]}})"},
          {R"(a=null, b=[true, None], c={"x": false})",
           R"({"a": null, "b": [true, null], "c": {"x": false}})"},
          {R"(d=[True,"true \"null\"",{"k":None}])",
           R"({"d": [true, "true \"null\"", {"k": null}]})"},
          {"d=False", R"({"d": false})"}}) {
      const std::string text = call_of(*rules.format.calls, arguments);
      EXPECT_TRUE(reader.reads(text)) << text;
      const Message message = whole_message(rules, text);
      ASSERT_EQ(message.calls.size(), 1u) << text;
      EXPECT_EQ(ordered_json::parse(message.calls[0].arguments), ordered_json::parse(json));
    }
    EXPECT_FALSE(
        reader.reads(call_of(*rules.format.calls, R"(d=[True,"True \"null\"",{"k":None}])")));
    EXPECT_FALSE(reader.reads(call_of(*rules.format.calls, "b=[TRUE]")));
  }
  EXPECT_FALSE(reader_of(rules_of("json")).reads(R"({"name": "f", "arguments": {"a": True}})"));
}

// Models also write texts in single quotes, which the grammar does not have.
TEST(CallGrammar, TextsInSingleQuotesAreRead) {
  const Message message = whole_message(
      rules_of("pythonic"), R"([f(a=True, b=[None, 1], c={'x': ['it\'s', "a'b", {'y': False}]})])");
  ASSERT_EQ(message.calls.size(), 1u);
  EXPECT_EQ(ordered_json::parse(message.calls[0].arguments),
            ordered_json::parse(
                R"({"a": true, "b": [null, 1], "c": {"x": ["it's", "a'b", {"y": false}]}})"));
}

// Formats whose marks depend on the values, as published templates show them.
TEST(CallGrammar, HasMarksThatDependOnTheValue) {
  const char* const parameters = R"({"type": "object", "properties": {
      "text": {"type": "string"}, "days": {"type": "integer"}, "flag": {"type": "boolean"}}})";
  const std::vector<std::pair<const char*, std::string>> good = {
      {"deepseek_v32",
       "<｜DSML｜parameter name=\"text\" string=\"true\">3</｜DSML｜parameter>\n"
       "<｜DSML｜parameter name=\"days\" string=\"false\">3</｜DSML｜parameter>\n"},
      {"kimi_k3",
       "<|open|>argument key=\"text\" type=\"string\"<|sep|>3<|close|>argument<|sep|>"
       "<|open|>argument key=\"days\" type=\"number\"<|sep|>3<|close|>argument<|sep|>"},
      {"minicpm3", R"(text="3",days=3,flag=True)"},
      {"minicpm5", R"(<param name="text">3</param><param name="flag">False</param>)"},
      {"minicpm5", R"(<param name="text"><![CDATA[</param> ]] ]]></param>)"}};
  for (const auto& [format, arguments] : good) {
    MessageRules rules = rules_of(format);
    rules.functions[0].parameters = parameters;
    std::string text = call_of(*rules.format.calls, arguments);
    if (const size_t at = text.find(CallFormat::kDigits); at != text.npos) text[at] = '1';
    EXPECT_TRUE(reader_of(rules).reads(text)) << text;
    const Message message = whole_message(rules, text);
    ASSERT_EQ(message.calls.size(), 1u) << text;
    EXPECT_EQ(message, divided_message(rules, text, 1));
    const ordered_json read = ordered_json::parse(message.calls[0].arguments);
    EXPECT_EQ(read["text"], arguments.ends_with("]]></param>") ? "</param> ]] " : "3") << text;
    EXPECT_EQ(read.value("days", 3), 3) << text;
    EXPECT_EQ(read.value("flag", false), arguments.ends_with("True")) << text;
  }
  // A text of any argument is one if the mark says so.
  MessageRules rules = rules_of("deepseek_v32");
  const std::string text =
      call_of(*rules.format.calls,
              "<｜DSML｜parameter name=\"other\" string=\"true\">3</｜DSML｜parameter>\n");
  const Message message = whole_message(rules, text);
  ASSERT_EQ(message.calls.size(), 1u);
  EXPECT_EQ(message.calls[0].arguments, R"({"other": "3"})");
}

}  // namespace
}  // namespace fovea::text
