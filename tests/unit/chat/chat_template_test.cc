#include <fmt/format.h>
#include <gtest/gtest.h>

#include <map>

#include "base/files.h"
#include "base/gguf.h"
#include "base/json.h"
#include "fovea/chat.h"
#include "support/expect_error.h"
#include "support/temporary_folder.h"

namespace fovea {
namespace {

using nlohmann::ordered_json;

const std::string golden_folder = "tests/goldens/chat_templates/";

// The time of the goldens: 26 July 2024, 9:05:07, a Friday.
std::tm moment() {
  std::tm time{};
  time.tm_year = 124;
  time.tm_mon = 6;
  time.tm_mday = 26;
  time.tm_wday = 5;
  time.tm_yday = 207;
  time.tm_hour = 9;
  time.tm_min = 5;
  time.tm_sec = 7;
  return time;
}

ordered_json read_golden(const std::string& name) {
  return ordered_json::parse(read_file(golden_folder + name));
}

// Returns the result of a template in the format of the goldens: {"text", "spans"} or {"error"}.
ordered_json rendered(const std::string& source, const std::string& variables) {
  ordered_json result;
  try {
    const auto [text, spans] = ChatTemplate::parse(source, "t").render(variables, {}, moment);
    result["text"] = text;
    for (const ChatTemplate::Span& span : spans.value()) {
      result["spans"].push_back({span.begin, span.end});
    }
  } catch (const Error& error) {
    EXPECT_EQ(std::string(error.what()).rfind("t: line ", 0), 0u) << error.what();
    result["error"] = true;
  }
  return result;
}

ordered_json expected(const ordered_json& golden) {
  ordered_json result;
  for (const char* key : {"text", "spans", "error"}) {
    if (golden.contains(key)) result[key] = golden[key];
  }
  return result;
}

void check_sources(const std::string& name) {
  const ordered_json golden = read_golden(name);
  const std::string variables = golden["variables"].dump();
  EXPECT_GE(golden["cases"].size(), 80u);
  for (const ordered_json& each : golden["cases"]) {
    const std::string source = each["source"];
    EXPECT_EQ(rendered(source, variables), expected(each)) << source;
  }
}

TEST(ChatTemplateGoldens, ExpressionsMatchJinja2) { check_sources("expressions.json"); }
TEST(ChatTemplateGoldens, WhiteSpaceMatchesJinja2) { check_sources("whitespace.json"); }
TEST(ChatTemplateGoldens, StatementsMatchJinja2) { check_sources("statements.json"); }

bool refused(const std::string& source, const std::string& variables) {
  try {
    ChatTemplate::parse(source, "t").render(variables, {}, moment);
  } catch (const Error& error) {
    return error.kind() == ErrorKind::Unsupported;
  }
  return false;
}

// Any file of this format, for example from tools/fuzz_templates.py, which generates random
// templates. fovea may refuse by name what Jinja2 renders.
TEST(ChatTemplateGoldens, FileOfCasesMatchesJinja2) {
  const char* path = std::getenv("FOVEA_TEMPLATE_CASES");
  if (path == nullptr) GTEST_SKIP() << "FOVEA_TEMPLATE_CASES names no file";
  const ordered_json golden = ordered_json::parse(read_file(path));
  const std::string variables = golden["variables"].dump();
  for (const ordered_json& each : golden["cases"]) {
    const std::string source = each["source"];
    if (refused(source, variables)) continue;
    EXPECT_EQ(rendered(source, variables), expected(each)) << source;
  }
}

// Renders each template for each conversation, with and without the generation prompt.
TEST(ChatTemplateGoldens, ConversationsMatchJinja2) {
  const ordered_json conversations = read_golden("conversations.json");
  const ordered_json cases = read_golden("rendered.json")["cases"];
  EXPECT_GE(cases.size(), 400u);
  for (const ordered_json& each : cases) {
    std::string name = each["conversation"];
    ordered_json variables = {{"tools", nullptr},
                              {"documents", nullptr},
                              {"bos_token", "<s>"},
                              {"eos_token", "</s>"},
                              {"add_generation_prompt", name.ends_with('+')}};
    if (name.ends_with('+')) name.pop_back();
    variables.update(conversations[name]);
    const std::string file = each["template"];
    EXPECT_EQ(rendered(read_file(golden_folder + file), variables.dump()), expected(each))
        << file << " " << each["conversation"];
  }
}

std::string render(const std::string& source, const std::string& variables = "{}") {
  return ChatTemplate::parse(source, "t").render(variables, {}, moment).text;
}

// The output of a macro may be discarded or moved, so the position of its spans is unknown.
TEST(ChatTemplate, OmitsSpansWithoutAKnownPosition) {
  const auto result =
      ChatTemplate::parse(
          "{% macro m() %}{% generation %}x{% endgeneration %}{% endmacro %}{{ m() }}", "t")
          .render("{}");
  EXPECT_EQ(result.text, "x");
  EXPECT_FALSE(result.assistant.has_value());
}

TEST(ChatTemplate, ErrorsNameLineAndColumn) {
  const auto parse = [](const std::string& source) {
    return [source] { ChatTemplate::parse(source, "model/chat_template.jinja"); };
  };
  expect_error(ErrorKind::BadFile,
               {"model/chat_template.jinja: line 2, column 11: ", "expected '%}'"},
               parse("a\n  {% if 1 2 %}{% endif %}"
                     ""));
  expect_error(ErrorKind::BadFile, {"line 1, column 6: unknown filter nope"},
               parse("{{ 1|nope }}"));
  expect_error(ErrorKind::BadFile, {"the template ends here; expected {% endfor %} or {% else %}"},
               parse("{% for x in y %}"));
  expect_error(ErrorKind::BadFile, {"invalid UTF-8"}, parse("a\xFF"));
  // Regression found by fuzzing: a string with line breaks in the wrong place gave an error of
  // several lines.
  expect_error(ErrorKind::BadFile, {"line 1, column 14: unexpected '\"a b"},
               parse("{% set j = 1 \"a\nb\" %}"));
  for (const char* tag : {"include 'x'", "import 'x' as y", "from 'x' import y", "extends 'x'",
                          "block x", "autoescape true"}) {
    expect_error(ErrorKind::Unsupported, {"line 1, column 4: the tag ", " is not supported"},
                 parse(std::string("{% ") + tag + " %}"));
  }
  expect_error(ErrorKind::InvalidArgument, {"t: line 2, column ", ": no system role"},
               [] { render("\n{{ raise_exception('no\nsystem role') }}"); });
  expect_error(ErrorKind::InvalidArgument, {"line 1, column 7: 'dict object' has no attribute 'b'"},
               [] { render("{{ a.b.c }}", R"({"a": {}})"); });
}

// Unsupported features of Jinja2 and Python are refused by name. Regression: they were reported as
// mistakes of the template.
TEST(ChatTemplate, NamesUnsupportedFeatures) {
  for (const auto& [source, lacking] :
       {std::pair{"{{ 1e22|int }}", "more than 64 bits"},
        {"{{ 9223372036854775807 + 1 }}", "more than 64 bits"},
        {"{{ range(4).count(1) }}", "range.count is not supported"},
        {"{{ 'a'.swapcase() }}", "str.swapcase is not supported"},
        {"{{ '{}'.format(1) }}", "str.format is not supported"},
        {"{{ 'a'.center(5) }}", "str.center is not supported"},
        {"{{ '%5d' % 1 }}", "the format %5 is not supported"},
        {"{{ '%(a)s'|format(a=1) }}", "the filter format with named arguments"},
        {"{{ cycler('a') }}", "the function cycler is not supported"},
        {"{{ lipsum() }}", "the function lipsum is not supported"}}) {
    expect_error(ErrorKind::Unsupported, {lacking}, [&, text = source] { render(text); });
  }
  for (const std::string name : {"batch", "center", "groupby", "pprint", "slice", "truncate",
                                 "urlencode", "wordcount", "wordwrap", "xmlattr"}) {
    expect_error(ErrorKind::Unsupported, {"the filter " + name + " is not supported"},
                 [&] { render("{{ 'a'|" + name + " }}"); });
  }
}

// Any contents of a model's directory end in an error, in little time and memory.
TEST(HostileTemplate, IsRefusedQuickly) {
  std::string deep_brackets = "{{ ", deep_blocks, long_sum = "{{ 1", long_path = "{{ a";
  for (int i = 0; i < 100000; ++i) {
    deep_brackets += "(";
    deep_blocks += "{% if 1 %}";
    long_sum += "+1";
    long_path += ".b";
  }
  const std::string hostile[] = {
      "{% for a in range(100000) %}{% for b in range(100000) %}{% endfor %}{% endfor %}",
      "{{ range(10 ** 9) }}",
      "{{ 'x' * 100000000 }}",
      "{{ ['x'] * 100000000 }}",
      "{% for i in range(100000) %}{{ 'x' * 1000 }}{% endfor %}",
      "{% set n = namespace(x='x') %}{% for i in range(60) %}{% set n.x = n.x ~ n.x %}{% endfor %}",
      "{% set n = namespace(x=[1]) %}{% for i in range(60) %}{% set n.x = n.x + n.x %}{% endfor %}",
      "{% set n = namespace(x=[1]) %}{% for i in range(60) %}{% set n.x = [n.x, n.x] %}{% endfor "
      "%}{{ n.x }}",
      "{% set n = namespace(x=[1], y=[1]) %}{% for i in range(60) %}{% set n.x = [n.x, n.x] %}"
      "{% set n.y = [n.y, n.y] %}{% endfor %}{{ n.x == n.y }}",
      "{% set n = namespace(x=[1]) %}{% for i in range(99999) %}{% set n.x = [n.x] %}{% endfor %}",
      "{% set n = namespace(x=[1]) %}{% for i in range(99999) %}{% set n.x = n.x|map('string') "
      "%}{% endfor %}{{ n.x|list }}",
      "{% set n = namespace() %}{% set n.me = n %}{{ n }}",
      "{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}",
      "{% macro m(n) %}{% if n %}{{ m(n - 1) }}{{ m(n - 1) }}{% endif %}{% endmacro %}{{ m(60) }}",
      "{{ 2 ** 1000 }}",
      "{{ 9223372036854775807 + 1 }}",
      "{{ 10 ** 18 * 10 }}",
      "{{ '%999999999d' % 1 }}",
      "{{ 'a'|indent(10 ** 12) }}",
      "{{ [1]|tojson(indent=10 ** 12) }}",
      "{{ ''.__class__.__mro__ }}",
      "{{ ''['__class__'] }}",
      "{{ ''|attr('__class__') }}",
      "{{ '{0.__class__}'.format(1) }}",
      "{{ range.__globals__ }}",
      "{% set n = namespace(__init__=1) %}",
      "{{ [].append(1) }}",
      "{{ {}.update(a=1) }}",
      "{{ cycler.__init__ }}",
      deep_brackets,
      deep_blocks,
      long_sum + " }}",
      long_path + " }}",
      std::string(2 << 20, 'x')};
  for (const std::string& source : hostile) {
    EXPECT_THROW(render(source), Error) << source.substr(0, 200);
  }
}

std::string output(const std::string& source) {
  return ChatTemplate::parse(source, "t").render("{}", {}, moment).text;
}

// Regression: each keyword was compared with all before it, each parameter was searched among all
// arguments, and each key that is not a string among all of a dict. 20,000 of them took more than
// half a second; a million would take half an hour.
TEST(HostileTemplate, ManyNamesTakeLinearTime) {
  constexpr int kMany = 40'000;
  std::string named, bare;
  for (int i = 0; i < kMany; ++i) {
    named += fmt::format("{}k{}={}", i == 0 ? "" : ",", i, i);
    bare += fmt::format("{}{}: {}", i == 0 ? "" : ",", i, i + 1);
  }
  EXPECT_EQ(output("{% set d = dict(" + named + ") %}{{ d.k39999 }}"), "39999");
  EXPECT_EQ(
      output("{% macro m(" + named + ") %}{{ k7 + k39999 }}{% endmacro %}{{ m(" + named + ") }}"),
      "40006");
  EXPECT_EQ(output("{% set d = dict(" + named +
                   ") %}{% macro m() %}{{ kwargs.k9 }}{% endmacro %}{{ m(**d) }}"),
            "9");
  EXPECT_EQ(output("{% set d = {" + bare + "} %}{{ d[39999] }} {{ d[7.0] }} {{ d|length }}"),
            "40000 8 40000");
}

TEST(ChatTemplate, MergesEqualKeys) {
  EXPECT_EQ(output("{{ {1: 'a', 1.0: 'b', true: 'c', none: 'd', '1': 'e'}|length }}"), "3");
  EXPECT_EQ(output("{% set d = {0: 'a', false: 'b', -0.0: 'c', 2.5: 'd'} %}{{ d[0] }}{{ d[2.5] }}"),
            "cd");
  EXPECT_EQ(output("{% set d = {9007199254740993: 'a', 9007199254740992.0: 'b'} %}{{ d|length }}"),
            "2");
  EXPECT_THROW(output("{{ dict(a=1, **{'a': 2}) }}"), Error);
  EXPECT_THROW(output("{{ dict(a=1, a=2) }}"), Error);
}

TEST(HostileTemplate, RespectsTheCallersLimits) {
  const ChatTemplate loop =
      ChatTemplate::parse("{% for i in range(1000) %}{{ i }}{% endfor %}", "t");
  EXPECT_EQ(loop.render("{}").text.size(), 2890u);
  RenderLimits limits;
  limits.steps = 100;
  expect_error(ErrorKind::InvalidArgument, {"more than 100 steps"},
               [&] { loop.render("{}", limits); });
  limits = {};
  limits.output_bytes = 1000;
  expect_error(ErrorKind::InvalidArgument, {"at most 1000"}, [&] { loop.render("{}", limits); });
}

TEST(HostileTemplate, VariablesMustBeJson) {
  const ChatTemplate any = ChatTemplate::parse("{{ a }}", "t");
  for (const char* text : {"", "[", "1", "[]", R"({"a": 1, "a": 2})", R"({"a": "\ud800"})",
                           R"({"a": 18446744073709551615})", "{\"a\": \"\xFF\"}"}) {
    EXPECT_THROW(any.render(text), Error) << text;
  }
  EXPECT_THROW(any.render(R"({"a": )" + std::string(100000, '[')), Error);
}

ChatRequest hello() {
  ChatRequest request;
  request.messages = R"([{"role": "user", "content": "Hi"}])";
  return request;
}

TEST(ModelChatTest, ReadsTheTemplateOfADirectory) {
  const TemporaryFolder model;
  const auto answer = [&](const ChatRequest& request) {
    return ModelChat::open(model.path()).render(request, {}, moment).text;
  };
  expect_error(ErrorKind::Unsupported, {model.path(), "the model has no chat template"},
               [&] { answer(hello()); });
  write_file_atomically(model / "tokenizer_config.json", R"({"chat_template": [
      {"name": "default",
       "template": "{{ bos_token }}{{ messages[0].content }}{{ add_generation_prompt }}{{ x }}"},
      {"name": "tool_use", "template": "tools {{ tools|length }}"}],
      "bos_token": "<s>", "eos_token": {"content": "</s>"}, "pad_token": null,
      "add_bos_token": true})");
  ChatRequest request = hello();
  request.variables = R"({"x": "!"})";
  EXPECT_EQ(answer(request), "<s>HiTrue!");
  request.tools = R"([{"type": "function"}])";
  EXPECT_EQ(answer(request), "tools 1");
  request.template_name = "rag";
  expect_error(ErrorKind::InvalidArgument,
               {"no chat template rag; expected one of default, tool_use"},
               [&] { answer(request); });
  write_file_atomically(model / "chat_template.jinja",
                        "{{ messages[0].reasoning_content }}{{ eos_token }}");
  request = hello();
  request.messages = R"([{"role": "assistant", "content": "", "thinking": "hm"}])";
  EXPECT_EQ(answer(request), "hm</s>");
  request.messages = "[1]";
  expect_error(ErrorKind::InvalidArgument, {"messages: expected an array of objects"},
               [&] { answer(request); });
}

TEST(ChatFormatTest, ComesFromADirectoryOrAFile) {
  const TemporaryFolder model;
  EXPECT_FALSE(chat_format(model.path(), "", std::nullopt));
  write_file_atomically(model / "chat_template.jinja",
                        "{{ messages[0].content }}{{ developer }}{% if 0 %}{{ tools }}{% endif %}");
  const auto of_model = chat_format(model.path(), "", std::nullopt);
  ASSERT_TRUE(of_model);
  EXPECT_EQ(of_model->render(hello()), "Hi");
  EXPECT_TRUE(of_model->knows_developer);
  EXPECT_TRUE(of_model->knows_tools);
  EXPECT_FALSE(of_model->knows_documents);
  const std::string file = model / "other.jinja";
  write_file_atomically(file, "{{ bos_token }}\n{{ raise_exception('no') }}");
  const auto of_file = chat_format(model.path(), file, std::nullopt);
  ASSERT_TRUE(of_file);
  expect_error(ErrorKind::InvalidArgument, {"the chat template: line 2, column ", ": no"},
               [&] { of_file->render(hello()); });
  EXPECT_THROW(chat_format(model.path(), model / "none.jinja", std::nullopt), Error);
}

TEST(ModelChatTest, ReadsTheTemplateOfAGguf) {
  GgufMetadata metadata;
  metadata.text("tokenizer.ggml.model", "llama");
  metadata.texts("tokenizer.ggml.tokens", {"<unk>", "<s>", "</s>", "h", "i"});
  metadata.numbers("tokenizer.ggml.scores", {0, 0, 0, -1, -1});
  metadata.integers("tokenizer.ggml.token_type", {2, 3, 3, 1, 1});
  metadata.integer("tokenizer.ggml.bos_token_id", 1);
  metadata.text("tokenizer.chat_template", "{{ bos_token }}{{ messages[0].content }}");
  const TemporaryFolder folder;
  const std::string path = folder / "model.gguf";
  write_file_atomically(path, GgufImage(metadata, {}).pieces());
  ChatRequest request;
  request.messages = R"([{"role": "user", "content": "hi"}])";
  EXPECT_EQ(ModelChat::open(path).render(request).text, "<s>hi");
}

}  // namespace
}  // namespace fovea
