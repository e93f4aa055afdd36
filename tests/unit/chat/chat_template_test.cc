#include <fmt/format.h>
#include <gtest/gtest.h>

#include <map>

#include "base/files.h"
#include "base/gguf.h"
#include "base/json.h"
#include "fovea/text/chat.h"
#include "support/expect_error.h"
#include "support/template_goldens.h"
#include "support/temporary_folder.h"

namespace fovea::text {
namespace {

using nlohmann::ordered_json;

const std::string golden_folder = "tests/goldens/chat_templates/";

ordered_json read_golden(const std::string& name) {
  return read_template_golden(golden_folder + name);
}

ordered_json rendered(const std::string& source, const std::string& variables) {
  return as_golden(
      [&] { return ChatTemplate::parse(source, "t").render(variables, {}, golden_time); });
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
    EXPECT_EQ(rendered(read_file(golden_folder + file), variables.dump()), expected_result(each))
        << file << " " << each["conversation"];
  }
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

TEST(ChatTemplate, VariablesAreJson) {
  const ChatTemplate any = ChatTemplate::parse("{{ a }}", "t");
  for (const char* text : {"", "[", "1", "[]", R"({"a": 1, "a": 2})", R"({"a": "\ud800"})",
                           R"({"a": 18446744073709551615})", "{\"a\": \"\xFF\"}"}) {
    EXPECT_THROW(any.render(text), Error) << text;
  }
  EXPECT_THROW(any.render(R"({"a": )" + std::string(100000, '[')), Error);
  EXPECT_THROW(ChatTemplate::parse(std::string(2 << 20, 'x'), "t"), Error);
}

ChatRequest hello() {
  ChatRequest request;
  request.messages = ChatValue::parse(R"([{"role": "user", "content": "Hi"}])", "messages");
  return request;
}

TEST(ModelChatTest, ReadsTheTemplateOfADirectory) {
  const TemporaryFolder model;
  const auto answer = [&](const ChatRequest& request) {
    return ModelChat::open(model.path()).render(request, {}, golden_time).text;
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
  request.variables = ChatValue::parse(R"({"x": "!"})", "variables");
  EXPECT_EQ(answer(request), "<s>HiTrue!");
  request.tools = ChatValue::parse(R"([{"type": "function"}])", "tools");
  EXPECT_EQ(answer(request), "tools 1");
  request.template_name = "rag";
  expect_error(ErrorKind::InvalidArgument,
               {"no chat template rag; expected one of default, tool_use"},
               [&] { answer(request); });
  write_file_atomically(model / "chat_template.jinja",
                        "{{ messages[0].reasoning_content }}{{ eos_token }}");
  request = hello();
  request.messages =
      ChatValue::parse(R"([{"role": "assistant", "content": "", "thinking": "hm"}])", "messages");
  EXPECT_EQ(answer(request), "hm</s>");
  request.messages = ChatValue::parse("[1]", "messages");
  expect_error(ErrorKind::InvalidArgument, {"messages: is invalid; expected an array of objects"},
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

TEST(ChatMessages, HaveFurtherMembers) {
  EXPECT_EQ(chat_message("user", "say \"a\"").json(), R"({"role":"user","content":"say \"a\""})");
  const ChatValue call = ChatValue::parse(R"({"content": null, "tool_calls": []})", "members");
  EXPECT_EQ(chat_message("assistant", "", call).json(),
            R"({"role":"assistant","content":null,"tool_calls":[]})");
  expect_error(ErrorKind::InvalidArgument, {"members: not a JSON object"},
               [] { chat_message("user", "", ChatValue::list({})); });
}

TEST(ChatValues, AreMadeFromTextAndFromParts) {
  const std::string text = R"({"b":[1,-2,0.5,true,null,"é"],"a":{}})";
  const ChatValue made = ChatValue::object(
      {{"b", ChatValue::list({1, -2, 0.5, true, ChatValue(), "é"})}, {"a", ChatValue::object({})}});
  EXPECT_EQ(made.json(), text);
  EXPECT_EQ(ChatValue::parse(text, "t").json(), text);
  EXPECT_EQ(ChatValue::of(nlohmann::ordered_json::parse(text)).json(), text);
  EXPECT_TRUE(ChatValue().is_null());
  EXPECT_TRUE(ChatValue::parse("null", "t").is_null());
  EXPECT_EQ(ChatValue("a\xff").json(), "\"a\xEF\xBF\xBD\"");
  EXPECT_EQ(ChatValue::object({{"a", 1}, {"a", 2}}).json(), R"({"a":2})");
  expect_error(ErrorKind::BadFile, {"t: "}, [] { ChatValue::parse("[1", "t"); });
  expect_error(ErrorKind::InvalidArgument, {"2^63"}, [] { ChatValue{uint64_t{1} << 63}; });
}

// A client's body, or a file, may be nested more deeply than the stack allows.
TEST(ChatValues, AreNotNestedTooDeeply) {
  nlohmann::json deep = 1;
  for (int i = 0; i < 70; ++i) deep = nlohmann::json::array({deep});
  expect_error(ErrorKind::InvalidArgument, {"nested too deeply"}, [&] { ChatValue::of(deep); });
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
  request.messages = ChatValue::parse(R"([{"role": "user", "content": "hi"}])", "messages");
  EXPECT_EQ(ModelChat::open(path).render(request).text, "<s>hi");
}

}  // namespace
}  // namespace fovea::text
