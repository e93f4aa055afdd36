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

}  // namespace
}  // namespace fovea::text
