// The formats of calls, on texts that the chat templates of published models show
// (tests/goldens/call_formats.json).

#include "calls/call_formats.h"

#include <gtest/gtest.h>

#include <fstream>
#include <set>

#include "base/ordered_json.h"
#include "unit/calls/message.h"

namespace fovea::text {
namespace {

using nlohmann::ordered_json;

const std::vector<CallableFunction>& functions() {
  static const std::vector<CallableFunction> all = {
      {"get_weather",
       R"({"type": "object", "properties": {"location": {"type": "string"},
           "days": {"type": "integer"}}})"},
      {"now", ""},
      {"save_note",
       R"({"type": "object", "properties": {"text": {"type": "string"}, "flag": {"type": "boolean"},
           "list": {"type": "array"}, "object": {"type": "object"}, "number": {"type": "number"},
           "code": {"type": "string"}}})"}};
  return all;
}

struct Case {
  std::string name, text;
  const CallFormat* format;
};

// Returns the texts of templates whose format is known.
std::vector<Case> cases() {
  std::ifstream file("tests/goldens/call_formats.json");
  const ordered_json rows = ordered_json::parse(file);
  std::vector<Case> all;
  for (const ordered_json& row : rows) {
    if (!row.contains("format")) continue;
    const std::set<std::string> wrong = row.value("wrong", std::set<std::string>());
    for (const char* key : {"one", "two", "with_text", "hard"})
      if (row.contains(key) && !wrong.contains(key))
        all.push_back({row["template"].get<std::string>() + "/" + key, row[key],
                       find_call_format(row["format"])});
  }
  return all;
}

MessageRules rules_of(const Case& each, bool enforced) {
  MessageRules rules;
  rules.functions = functions();
  rules.enforced = enforced;
  if (enforced) rules.format.calls = each.format;
  if (each.format == find_call_format("functionary_v32") && !each.text.starts_with(">>>"))
    rules.begun = ">>>";
  // What a template writes of reasoning.
  for (const auto& [begin, end, needs_begin] : reasoning_marks()) {
    const size_t closing = each.text.find(end), opening = each.text.find(begin);
    if (closing == std::string::npos || needs_begin) continue;
    rules.format.reasoning_begin = begin;
    rules.format.reasoning_end = end;
    rules.in_reasoning = opening > closing;
    break;
  }
  return rules;
}

void expect_calls(const Case& each, const Message& message) {
  SCOPED_TRACE(each.name + ": " + each.text);
  const bool one = each.name.ends_with("/one") || each.name.ends_with("/hard");
  ASSERT_GE(message.calls.size(), 1u);
  if (!each.text.starts_with("{")) {  // the templates of Llama show one call only
    ASSERT_EQ(message.calls.size(), one ? 1u : 2u);
  }
  const ordered_json given = ordered_json::parse(message.calls[0].arguments);
  if (!each.name.ends_with("/hard")) {
    EXPECT_EQ(message.calls[0].name, "get_weather");
    EXPECT_EQ(given.value("location", ""), "Zürich");
    EXPECT_EQ(given.value("days", 0), 3);
    return;
  }
  EXPECT_EQ(message.calls[0].name, "save_note");
  EXPECT_EQ(given.value("text", ""), "line 1\n  line \"2\" it's <b> & \\ end");
  EXPECT_EQ(given.value("flag", false), true);
  EXPECT_EQ(given.value("list", ordered_json()), ordered_json::parse(R"([1, "a", {"b": false}])"));
  EXPECT_EQ(given.value("object", ordered_json()),
            ordered_json::parse(R"({"k": 1.5, "s": "x, y"})"));
  EXPECT_EQ(given.value("number", 0.0), -0.0025);
  EXPECT_EQ(given.value("code", ""), "007");
}

TEST(CallFormats, AreReadWhileTheyAreGenerated) {
  for (const Case& each : cases()) {
    const MessageRules rules = rules_of(each, true);
    const Message whole = whole_message(rules, each.text);
    expect_calls(each, whole);
    EXPECT_EQ(whole, divided_message(rules, each.text, 1)) << each.name;
  }
}

TEST(CallFormats, AreFoundWithoutTheirName) {
  for (const Case& each : cases()) {
    // The text ">>>" is too frequent to be a mark of calls.
    if (each.format == find_call_format("functionary_v32")) continue;
    expect_calls(each, whole_message(rules_of(each, false), each.text));
  }
}

// Returns a template that shows calls in a format.
std::string template_of(const CallFormat& format) {
  const auto literal = [](std::string text, const char* digits) {
    std::string out;
    for (const char c : text) {
      if (c == CallFormat::kDigits)
        out += std::string("' ~ ") + digits + " ~ '";
      else if (c == CallFormat::kId)
        out += "' ~ call.id ~ '";
      else if (c == CallFormat::kIsText)
        out += "true";
      else if (c == CallFormat::kType)
        out += "string";
      else if (c == '\n')
        out += "\\n";
      else
        out += c;
    }
    return "{{ '" + out + "' }}";
  };
  std::string arguments;
  const auto each = [&](const std::string& separator, const std::string& pair) {
    return "{% for key, value in call.function.arguments.items() %}" + pair +
           (separator.empty() ? "" : "{% if not loop.last %}" + separator + "{% endif %}") +
           "{% endfor %}";
  };
  switch (format.style) {
    case ArgumentStyle::json: arguments = "{{ call.function.arguments | tojson }}"; break;
    case ArgumentStyle::tagged:
      arguments = each("", literal(format.key, "0") + "{{ key }}" + literal(format.value, "0") +
                               "{{ value }}" + literal(format.value_end, "0"));
      break;
    case ArgumentStyle::keywords: arguments = each(", ", "{{ key }}={{ value | tojson }}"); break;
    case ArgumentStyle::braces:
      arguments = "{{ '{' }}" +
                  each(",", "{{ key }}:" + literal(format.key, "0") + "{{ value }}" +
                                literal(format.key, "0")) +
                  "{{ '}' }}";
      break;
  }
  return "{% if tools %}T{% endif %}{% for message in messages %}<m>{% if message.tool_calls %}" +
         literal(format.begin, "0") + "{% for call in message.tool_calls %}" +
         "{% if not loop.first %}" + literal(format.separator, "0") + "{% endif %}" +
         literal(format.call, "0") + "{{ call.function.name }}" +
         literal(format.arguments, "loop.index0") + arguments + literal(format.call_end, "0") +
         "{% endfor %}" + literal(format.end, "0") +
         "{% else %}{{ message.content }}{% endif %}</m>{% endfor %}";
}

TEST(CallFormats, AreFoundByRenderingATemplate) {
  for (const CallFormat& format : call_formats()) {
    // qwen3_coder_unopened is an error of models.
    if (std::string_view(format.name) == "qwen3_coder_unopened") continue;
    const ModelChat chat = ModelChat::of_source(template_of(format), format.name, std::nullopt);
    ChatFormat made;
    made.render = [&chat](const ChatRequest& request) { return chat.render(request).text; };
    const CallFormat* const found = message_format(made).calls;
    const std::string expected = *format.generated != '\0' ? format.generated : format.name;
    ASSERT_NE(found, nullptr) << format.name << "\n" << template_of(format);
    EXPECT_EQ(found->name, expected);
  }
}

// The source of such a template does not have the marks.
TEST(CallFormats, MarksOfReasoningMayBeComposed) {
  ChatFormat made;
  made.render = [](const ChatRequest&) { return "<think:opensource></think:opensource>Yes."; };
  EXPECT_EQ(message_format(made).reasoning_end, "</think:opensource>");
}

TEST(CallFormats, AreNamed) {
  for (const CallFormat& format : call_formats()) {
    if (*format.generated != '\0') continue;
    EXPECT_EQ(find_call_format(format.name), &format);
  }
  EXPECT_THROW(find_call_format("unknown"), Error);
  std::set<std::string> names;
  for (const CallFormat& format : call_formats()) EXPECT_TRUE(names.insert(format.name).second);
}

}  // namespace
}  // namespace fovea::text
