#include <gtest/gtest.h>

#include <random>

#include "unit/calls/message.h"

namespace fovea::text {
namespace {

const char* const kCall = R"({"name": "f", "arguments": {"a": 1}})";

MessageRules rules_of(const char* format = nullptr, bool thinks = false) {
  MessageRules rules;
  rules.functions = {{"f", ""}, {"g", ""}};
  if (format != nullptr) rules.format.calls = find_call_format(format);
  rules.enforced = format != nullptr;
  if (thinks) {
    rules.format.reasoning_begin = "<think>";
    rules.format.reasoning_end = "</think>";
  }
  return rules;
}

TEST(MessageReader, FindsCommonFormats) {
  const MessageRules rules = rules_of();
  EXPECT_EQ(whole_message(rules, R"( {"name": "f", "parameters": {}})").calls.size(), 1u);
  EXPECT_EQ(
      whole_message(rules, R"([{"name": "f", "arguments": "{}"}, {"name": "g", "arguments": {}}])")
          .calls.size(),
      2u);
  const Message after =
      whole_message(rules, R"([Note] <tool_call>{"name": "f", "arguments": {}}</tool_call>)");
  EXPECT_EQ(after.calls.size(), 1u);
  EXPECT_EQ(after.content, "[Note]");
}

// {"name": "Alice", "parameters": ...} was a call of Alice, and the arguments of a call could be 0.
TEST(MessageReader, LeavesOtherTextsAsTheyAre) {
  for (const char* const format :
       {static_cast<const char*>(nullptr), "hermes", "llama3", "pythonic"})
    for (const std::string& text :
         {std::string("{\"a\": 1}"), std::string("[]"), std::string("{\"name\": \"f\""),
          std::string("<tool_call>h</tool_call>"), std::string("<tool_call>"), std::string("hello"),
          std::string(R"({"name": "Alice", "parameters": {"age": 3}})"),
          std::string(R"({"name": "f", "arguments": 0})"),
          std::string(R"({"name": "f", "arguments": "x"})"),
          std::string(R"(<tool_call>{"name": "h", "arguments": {}}</tool_call>)"),
          std::string("```json\n{\"a\": 1}\n```\n"), std::string("f(1)"), std::string(" \n a \n "),
          std::string(100'000, '['), std::string("[f(")}) {
      const Message found = whole_message(rules_of(format), text);
      EXPECT_TRUE(found.calls.empty()) << text.substr(0, 50);
      EXPECT_EQ(found.content, text) << (format != nullptr ? format : "any");
    }
}

// A text in brackets was held back to its end.
TEST(MessageReader, StreamsTextsInBrackets) {
  const auto streamed = [](const std::vector<std::string>& pieces) {
    MessageReader reader(rules_of());
    std::string text;
    for (const std::string& piece : pieces)
      for (const MessagePart& part : reader.add(piece)) text += part.text;
    return text;
  };
  EXPECT_EQ(streamed({" [", "Note] ", "so"}), " [Note] so");
  EXPECT_EQ(streamed({"{\"", "a\"", ": 1}"}), "{\"a\": 1}");
  EXPECT_EQ(streamed({"[", "{\"na", "me\": \"f\"}]"}), "");
  EXPECT_EQ(streamed({"a <tool", "_call>{"}), "a");
}

TEST(MessageReader, PassesOnArgumentsOfEnforcedCalls) {
  MessageReader reader(rules_of("hermes"));
  EXPECT_TRUE(reader.add("<tool_call>\n{\"name\": \"f").empty());
  std::vector<MessagePart> parts = reader.add("\", \"arguments\": {\"a\"");
  ASSERT_EQ(parts.size(), 1u);
  EXPECT_TRUE(parts[0].begins);
  EXPECT_EQ(parts[0].name, "f");
  EXPECT_EQ(parts[0].text, "{\"a\"");
  parts = reader.add(": 1}}\n</tool_call>");
  ASSERT_EQ(parts.size(), 1u);
  EXPECT_FALSE(parts[0].begins);
  EXPECT_EQ(parts[0].text, ": 1}");
  EXPECT_TRUE(reader.finish().empty());
}

TEST(MessageReader, SplitsReasoning) {
  const Message message =
      whole_message(rules_of("hermes", true), "<think>\nWhy?\n</think>\n\nSo.\n<tool_call>\n" +
                                                  std::string(kCall) + "\n</tool_call>");
  EXPECT_EQ(message.reasoning, "Why?");
  EXPECT_EQ(message.content, "So.");
  ASSERT_EQ(message.calls.size(), 1u);
  EXPECT_EQ(message.calls[0].arguments, "{\"a\": 1}");

  MessageRules within = rules_of(nullptr, true);
  within.in_reasoning = true;
  EXPECT_EQ(whole_message(within, "Why?\n</think>\nSo."), (Message{"Why?", "So."}));
  EXPECT_EQ(whole_message(within, "Cut"), (Message{"Cut", ""}));
  // A mark later in the content is content.
  EXPECT_EQ(whole_message(rules_of(nullptr, true), "So <think>."), (Message{"", "So <think>."}));
  MessageRules joined = within;
  joined.split_reasoning = false;
  EXPECT_EQ(whole_message(joined, "Why?</think>So."), (Message{"", "Why?</think>So."}));
}

TEST(MessageReader, DropsFrames) {
  MessageRules rules = rules_of("harmony");
  rules.format.reasoning_begin = "<|channel|>analysis<|message|>";
  rules.format.reasoning_end = "<|end|>";
  EXPECT_EQ(whole_message(rules,
                          "<|channel|>analysis<|message|>Hm.<|end|><|start|>assistant<|channel|>"
                          "commentary<|message|>I look.<|end|><|start|>assistant<|channel|>"
                          "commentary to=functions.f <|constrain|>json<|message|>{\"a\": 1}"),
            (Message{"Hm.", "I look.", {{"f", "{\"a\": 1}"}}}));
  EXPECT_EQ(whole_message(rules, "<|channel|>final<|message|>Yes."), (Message{"", "Yes."}));
}

TEST(MessageReader, KeepsACallThatWasCutOff) {
  const Message cut = whole_message(rules_of("hermes"),
                                    "<tool_call>\n{\"name\": \"f\", \"arguments\": {\"a\": [1, ");
  ASSERT_EQ(cut.calls.size(), 1u);
  EXPECT_EQ(cut.calls[0].arguments, "{\"a\": [1, ");
  EXPECT_EQ(cut.content, "");
}

// The pieces of all formats.
const std::vector<std::string>& pieces() {
  static const std::vector<std::string> all = {
      "<tool_call>",
      "</tool_call>",
      "\n",
      " ",
      "{\"name\": \"f\", \"arguments\": ",
      "{\"a\": 1}",
      "}",
      "<think>",
      "</think>",
      "text",
      "[f(a=1)",
      "]",
      ", ",
      "g()",
      "<function=f>\n",
      "<parameter=a>\n",
      "x\n</parameter>\n",
      "</function>\n",
      "```json\n",
      "```",
      "[TOOL_CALLS]",
      "f[ARGS]",
      ">>>",
      "all\n",
      "f\n",
      "<|channel|>analysis<|message|>",
      "<|end|>",
      "<|start|>assistant",
      "{",
      "\"",
      "[",
      "f",
      "Zü",
      "<|channel|>final<|message|>",
      "<|channel|>commentary to=functions.f <|constrain|>json<|message|>",
      "<|tool_call>call:f",
      "{a:<|\"|>x<|\"|>}",
      "<tool_call|>",
      "<arg_key>a</arg_key>\n",
      "f(a=\"b\")",
      "<arg_value>1</arg_value>\n",
      "<|python_tag|>",
      "; ",
      "(",
      ")"};
  return all;
}

// Texts made of the pieces give the same message however they are divided.
TEST(MessageReader, DoesNotDependOnTheDivision) {
  std::mt19937 random(1);
  for (const char* const name :
       {static_cast<const char*>(nullptr), "hermes", "qwen3_coder", "glm45", "llama3", "pythonic",
        "mistral_v13", "harmony", "functionary_v32", "gemma4", "lfm2", "olmo3", "json_list"}) {
    for (int i = 0; i < 400; ++i) {
      MessageRules rules = rules_of(name, i % 2 == 0);
      if (name != nullptr && name == std::string_view("harmony"))
        rules.format.reasoning_begin = "<|channel|>analysis<|message|>",
        rules.format.reasoning_end = "<|end|>";
      rules.in_reasoning = i % 8 == 0;
      rules.enforced = name != nullptr && i % 3 != 0;
      std::string text;
      for (int n = 0; n < 1 + i % 12; ++n) text += pieces()[random() % pieces().size()];
      const Message whole = whole_message(rules, text);
      for (const size_t size : {size_t{1}, size_t{2}, size_t{5}})
        ASSERT_EQ(whole, divided_message(rules, text, size))
            << (name != nullptr ? name : "any") << " " << size << "\n"
            << text;
    }
  }
}

}  // namespace
}  // namespace fovea::text
