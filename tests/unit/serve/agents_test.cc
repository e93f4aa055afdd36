// The routes that coding agents use: OpenAI's Responses and Anthropic's Messages.

#include <gtest/gtest.h>

#include "api_fixture.h"
#include "serve/generation/custom_tools.h"
#include "serve/protocols/anthropic.h"
#include "serve/protocols/responses.h"

namespace fovea::serve {
namespace {

class AgentsTest : public ApiTest {
 protected:
  void SetUp() override {
    ApiTest::SetUp();
    model_->facts.context = 512;
    generator().message = {text::find_call_format("hermes"), "<think>", "</think>"};
    pieces_ = {"<think>Hm.", "</think>Loo",
               "k.\n<tool_call>\n{\"name\": \"f\", \"arguments\": {\"a\"", ": 1}}\n</tool_call>"};
  }

  struct NamedEvent {
    std::string name;
    Json data;
  };
  // "event: NAME\ndata: {...}\n\n"
  std::vector<NamedEvent> named_events(const std::shared_ptr<http::FakeExchange>& exchange) {
    std::string all;
    for (const std::string& piece : exchange->pieces) all += piece;
    std::vector<NamedEvent> events;
    for (size_t at = 0; at < all.size();) {
      const size_t line = all.find('\n', at), end = all.find("\n\n", at);
      EXPECT_EQ(all.substr(at, 7), "event: ");
      EXPECT_EQ(all.substr(line + 1, 6), "data: ");
      events.push_back(
          {all.substr(at + 7, line - at - 7), Json::parse(all.substr(line + 7, end - line - 7))});
      EXPECT_EQ(events.back().data["type"], events.back().name);
      at = end + 2;
    }
    return events;
  }
  static std::vector<std::string> names_of(const std::vector<NamedEvent>& events) {
    std::vector<std::string> names;
    for (const NamedEvent& event : events)
      if (names.empty() || names.back() != event.name) names.push_back(event.name);
    return names;
  }

  const std::string kResponses = "/v1/responses", kMessages = "/v1/messages";
  const Json function_ = {
      {"type", "function"},
      {"name", "f"},
      {"parameters", {{"type", "object"}, {"properties", {{"a", {{"type", "integer"}}}}}}}};
  const Json messages_ = {{{"role", "user"}, {"content", "hi"}}};
  const Json tool_ = {{"name", "f"}, {"input_schema", {{"type", "object"}}}};
};

TEST_F(AgentsTest, AResponseHasItsItems) {
  const Json response = parsed(post(kResponses, {{"input", "hi"}, {"tools", {function_}}}));
  EXPECT_EQ(response["status"], "completed");
  ASSERT_EQ(response["output"].size(), 3u);
  EXPECT_EQ(response["output"][0]["content"][0]["text"], "Hm.");
  EXPECT_EQ(response["output"][1]["content"][0]["text"], "Look.");
  EXPECT_EQ(response["output"][2]["name"], "f");
  EXPECT_EQ(response["output"][2]["arguments"], "{\"a\": 1}");
  EXPECT_GT(response["usage"]["output_tokens_details"]["reasoning_tokens"].get<int>(), 0);
}

TEST_F(AgentsTest, AStreamedResponseHasTheEventsOfItsItems) {
  const auto events =
      named_events(post(kResponses, {{"input", "hi"}, {"tools", {function_}}, {"stream", true}}));
  EXPECT_EQ(
      names_of(events),
      (std::vector<std::string>{
          "response.created", "response.in_progress", "response.output_item.added",
          "response.content_part.added", "response.reasoning_text.delta",
          "response.reasoning_text.done", "response.content_part.done", "response.output_item.done",
          "response.output_item.added", "response.content_part.added", "response.output_text.delta",
          "response.output_text.done", "response.content_part.done", "response.output_item.done",
          "response.output_item.added", "response.function_call_arguments.delta",
          "response.function_call_arguments.done", "response.output_item.done",
          "response.completed"}));
  for (size_t i = 0; i < events.size(); ++i) EXPECT_EQ(events[i].data["sequence_number"], Json(i));
  // The items of the last event are those of a response in one body, apart from their ids.
  Json streamed = events.back().data["response"]["output"];
  Json whole = parsed(post(kResponses, {{"input", "hi"}, {"tools", {function_}}}))["output"];
  for (Json* const output : {&streamed, &whole})
    for (Json& item : *output) {
      item.erase("id");
      item.erase("call_id");
    }
  EXPECT_EQ(streamed, whole);
}

TEST_F(AgentsTest, AResponseThatIsCutOffIsIncomplete) {
  finish_ = infer::FinishReason::length;
  const Json response = parsed(post(kResponses, {{"input", "hi"}}));
  EXPECT_EQ(response["status"], "incomplete");
  EXPECT_EQ(response["incomplete_details"]["reason"], "max_output_tokens");
}

TEST_F(AgentsTest, ItemsBecomeMessages) {
  std::vector<std::string> warnings;
  const Json items = Json::parse(R"([
    {"role": "user", "content": [{"type": "input_text", "text": "a"}]},
    {"type": "reasoning", "summary": [{"type": "summary_text", "text": "r"}]},
    {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "b"}]},
    {"type": "function_call", "call_id": "1", "name": "f", "arguments": "{}"},
    {"type": "function_call_output", "call_id": "1", "output": "done"},
    {"type": "item_reference", "id": "rs_1"}, {"type": "web_search_call", "id": "w"}])");
  const Json messages = messages_of_items("s", items, warnings);
  EXPECT_EQ(messages, Json::parse(R"([
    {"role": "system", "content": "s"}, {"role": "user", "content": "a"},
    {"role": "assistant", "content": "b", "reasoning_content": "r", "tool_calls":
      [{"id": "1", "type": "function", "function": {"name": "f", "arguments": "{}"}}]},
    {"role": "tool", "tool_call_id": "1", "content": "done"}])"));
  EXPECT_EQ(warnings.size(), 2u);
  refused(post(kResponses, {{"input", {{{"type", "unknown"}}}}}), 400, "input[0].type");
  EXPECT_EQ(post(kResponses, {{"input", ""}, {"max_output_tokens", 1}})->response.status, 200);
}

TEST_F(AgentsTest, EncryptedReasoningComesBack) {
  const Json response =
      parsed(post(kResponses, {{"input", "hi"}, {"include", {"reasoning.encrypted_content"}}}));
  Json item = response["output"][0];
  item.erase("content");
  std::vector<std::string> warnings;
  EXPECT_EQ(messages_of_items({}, Json::array({item}), warnings)[0]["reasoning_content"], "Hm.");
}

TEST_F(AgentsTest, ToolsThatTheServerDoesNotRunAreNamed) {
  const Json search = {{"type", "web_search"}};
  const auto exchange = post(kResponses, {{"input", "hi"}, {"tools", {function_, search}}});
  EXPECT_EQ(exchange->response.status, 200);
  EXPECT_EQ(exchange->response.headers.at(0),
            (std::pair<std::string, std::string>{"fovea-left-out", "web_search"}));
  refused(post(kResponses, {{"input", "hi"}, {"tools", {search}}, {"tool_choice", search}}), 400,
          "tool_choice");
  const Json space = {{"type", "namespace"}, {"name", "n"}, {"tools", {function_}}};
  const Json response = parsed(post(kResponses, {{"input", "hi"}, {"tools", {space}}}));
  EXPECT_EQ(response["output"][2]["namespace"], "n");
  for (const char* field : {"store", "background"})
    refused(post(kResponses, {{"input", "hi"}, {field, true}}), 400, field);
  refused(post(kResponses, {{"input", "hi"}, {"previous_response_id", "resp_1"}}), 400,
          "previous_response_id");
}

TEST_F(AgentsTest, TheTextHasTheLogprobsOfItsTokens) {
  pieces_ = {"<think>",
             "Hm.",
             "</think>",
             "\n",
             "Loo",
             "k.",
             "\n<tool_call>\n{\"name\": \"f\", \"arguments\": {\"a\"",
             ": 1}}\n</tool_call>"};
  const Json body = {{"input", "hi"},
                     {"tools", {function_}},
                     {"include", {"message.output_text.logprobs"}},
                     {"top_logprobs", 2}};
  const Json response = parsed(post(kResponses, body));
  EXPECT_EQ(response["top_logprobs"], 2);
  const Json logprobs = response["output"][1]["content"][0]["logprobs"];
  ASSERT_EQ(logprobs.size(), 2u) << "without reasoning, marks and calls";
  EXPECT_EQ(logprobs[0]["token"], tokenizer_->bytes_of(65));
  EXPECT_EQ(logprobs[0]["top_logprobs"].size(), 2u);
  Json streaming = body;
  streaming["stream"] = true;
  Json joined = Json::array(), whole, last;
  for (const NamedEvent& event : named_events(post(kResponses, streaming))) {
    if (event.name == "response.output_text.delta")
      for (const Json& each : event.data["logprobs"]) joined.push_back(each);
    if (event.name == "response.output_text.done") whole = event.data["logprobs"];
    if (event.name == "response.completed")
      last = event.data["response"]["output"][1]["content"][0]["logprobs"];
  }
  for (const Json& found : {joined, whole, last}) EXPECT_EQ(found, logprobs);
  // Without alternatives, and without log-probabilities.
  pieces_ = {"Hel", "lo"};
  const auto tokens = [&](const Json& more) {
    Json asked = {{"input", "hi"}};
    asked.update(more);
    return parsed(post(kResponses, asked))["output"][0]["content"][0]["logprobs"];
  };
  EXPECT_EQ(tokens({{"include", {"message.output_text.logprobs"}}}).size(), 2u);
  EXPECT_EQ(tokens({{"top_logprobs", 1}}).size(), 2u);
  EXPECT_EQ(tokens({{"top_logprobs", 0}}), Json::array());
  refused(post(kResponses, {{"input", "hi"}, {"top_logprobs", 21}}), 400, "top_logprobs");
}

// The fixture's call is {"a": 1}; a custom tool's is {"input": ...}.
class CustomToolTest : public AgentsTest {
 protected:
  void SetUp() override {
    AgentsTest::SetUp();
    pieces_ = {"Ok.<tool_call>\n{\"name\": \"edit\", \"arguments\": {\"inp", "ut\": \"a\\",
               "nb\\u00", "e9\\ud83d\\ude00", " c\"}}\n</tool_call>"};
  }
  const std::string kText = "a\nb\u00e9\U0001F600 c";
  const Json custom_ = {{"type", "custom"}, {"name", "edit"}, {"description", "Edits."}};
  static Json with_grammar(Json tool, const char* syntax, const char* definition) {
    tool["format"] = {{"type", "grammar"}, {"syntax", syntax}, {"definition", definition}};
    return tool;
  }
};

TEST_F(CustomToolTest, AResponseHasTheInputOfACustomTool) {
  const Json choice = {{"type", "custom"}, {"name", "edit"}};
  const Json body = {{"input", "hi"}, {"tools", {custom_, function_}}, {"tool_choice", choice}};
  const Json response = parsed(post(kResponses, body));
  EXPECT_EQ(response["tool_choice"], choice);
  const Json& call = response["output"][1];
  EXPECT_EQ(call["type"], "custom_tool_call");
  EXPECT_EQ(call["name"], "edit");
  EXPECT_EQ(call["input"], kText);
  EXPECT_EQ(call["status"], "completed");
  EXPECT_FALSE(call.contains("arguments"));
  const Json offered = Json::parse(conversation_.tools.json())[0]["function"];
  EXPECT_EQ(offered["description"], "Edits.");
  EXPECT_EQ(offered["parameters"]["required"], Json::array({"input"}));
}

TEST_F(CustomToolTest, TheInputIsStreamed) {
  const auto events =
      named_events(post(kResponses, {{"input", "hi"}, {"tools", {custom_}}, {"stream", true}}));
  std::string joined;
  Json done;
  for (const NamedEvent& event : events) {
    if (event.name == "response.custom_tool_call_input.delta") joined += event.data["delta"];
    if (event.name == "response.custom_tool_call_input.done") done = event.data["input"];
  }
  EXPECT_EQ(joined, kText);
  EXPECT_EQ(done, kText);
  const std::vector<std::string> names = names_of(events);
  EXPECT_EQ(std::vector<std::string>(names.end() - 5, names.end()),
            (std::vector<std::string>{"response.output_item.added",
                                      "response.custom_tool_call_input.delta",
                                      "response.custom_tool_call_input.done",
                                      "response.output_item.done", "response.completed"}));
  EXPECT_EQ(events.back().data["response"]["output"][1]["input"], kText);
}

TEST_F(CustomToolTest, AnInputComesBackAsTheArgumentOfAFunction) {
  std::vector<std::string> warnings;
  const Json items = Json::parse(R"([
    {"type": "custom_tool_call", "call_id": "1", "name": "edit", "input": "a\n\"b\""},
    {"type": "custom_tool_call_output", "call_id": "1", "output": "done"}])");
  const Json messages = messages_of_items({}, items, warnings);
  EXPECT_EQ(messages[0]["tool_calls"][0]["function"]["arguments"], R"({"input":"a\n\"b\""})");
  EXPECT_EQ(messages[1],
            Json::parse(R"({"role": "tool", "tool_call_id": "1", "content": "done"})"));
}

// In chats, a custom tool and its calls are objects with the key "custom".
TEST_F(CustomToolTest, AChatHasTheInputOfACustomTool) {
  const Json tool = {{"type", "custom"}, {"custom", {{"name", "edit"}, {"description", "Edits."}}}};
  Json body = Json::parse(R"({"messages": [
    {"role": "user", "content": "hi"},
    {"role": "assistant", "content": null, "tool_calls": [
      {"id": "1", "type": "custom", "custom": {"name": "edit", "input": "b"}}]},
    {"role": "tool", "tool_call_id": "1", "content": "done"}],
    "tool_choice": {"type": "custom", "custom": {"name": "edit"}}})");
  body["tools"] = Json::array({tool, {{"type", "function"}, {"function", {{"name", "f"}}}}});
  const Json choice = parsed(post(kChatPath, body))["choices"][0];
  EXPECT_EQ(choice["finish_reason"], "tool_calls");
  const Json& call = choice["message"]["tool_calls"][0];
  EXPECT_EQ(call["type"], "custom");
  EXPECT_EQ(call["custom"], (Json{{"name", "edit"}, {"input", kText}}));
  const Json shown = Json::parse(conversation_.messages.json())[1]["tool_calls"][0]["function"];
  EXPECT_EQ(shown, Json::parse(R"({"name": "edit", "arguments": {"input": "b"}})"));
  body["stream"] = true;
  std::string joined, name;
  for (const Json& event : events(post(kChatPath, body))) {
    if (!event.is_object()) continue;
    for (const Json& part : event["choices"][0]["delta"].value("tool_calls", Json::array())) {
      joined += part["custom"].value("input", "");
      name += part["custom"].value("name", "");
    }
  }
  EXPECT_EQ(joined, kText);
  EXPECT_EQ(name, "edit");
}

TEST_F(CustomToolTest, AChatRefusesBadCustomTools) {
  const auto ask_with = [&](const char* tools) {
    return post(kChatPath, chat({{"tools", Json::parse(tools)}}));
  };
  refused(ask_with(R"([{"type": "custom"}])"), 400, "tools[0].custom");
  refused(ask_with(R"([{"type": "custom", "custom": {}}])"), 400, "tools[0].custom.name");
  refused(ask_with(R"([{"type": "custom", "custom": {"name": "a", "format":
                       {"type": "grammar", "grammar": {"syntax": "peg", "definition": "a"}}}}])"),
          400, "tools[0].custom.format.grammar.syntax");
  refused(ask_with(R"([{"type": "custom", "custom": {"name": "f"}},
                       {"type": "function", "function": {"name": "f"}}])"),
          400, "tools", "one tool with the name");
  const auto hosted = ask_with(R"([{"type": "web_search"}])");
  EXPECT_EQ(hosted->response.status, 200);
  EXPECT_EQ(hosted->response.headers.at(0),
            (std::pair<std::string, std::string>{"fovea-left-out", "web_search"}));
}

TEST_F(CustomToolTest, GrammarsAreEnforcedOrNamed) {
  std::vector<std::string> warnings;
  api_.set_warn([&](const std::string& line) { warnings.push_back(line); });
  const Json lark = with_grammar(custom_, "lark", "start: \"x\"");
  const auto exchange = post(kResponses, {{"input", "hi"}, {"tools", {lark}}});
  EXPECT_EQ(exchange->response.status, 200);
  EXPECT_TRUE(exchange->response.headers.empty());
  ASSERT_EQ(warnings.size(), 1u);
  EXPECT_NE(warnings[0].find("lark grammar of \"edit\""), std::string::npos) << warnings[0];
  const auto pattern = [&](const char* regex) {
    post(kResponses, {{"input", "hi"}, {"tools", {with_grammar(custom_, "regex", regex)}}});
    const Json function = Json::parse(conversation_.tools.json())[0]["function"];
    EXPECT_NE(function["description"].get<std::string>().find(regex), std::string::npos);
    return function["parameters"]["properties"]["input"]["pattern"].get<std::string>();
  };
  EXPECT_EQ(pattern("a|b"), "^(?:a|b)$");
  EXPECT_EQ(pattern("^a\\$|b$"), "^(?:a\\$|b)$");
  EXPECT_EQ(warnings.size(), 1u);
  const auto refuse = [&](const Json& tool, const char* param) {
    refused(post(kResponses, {{"input", "hi"}, {"tools", {tool}}}), 400, param);
  };
  refuse(with_grammar(custom_, "regex", "(?=a)"), "tools");
  refuse(with_grammar(custom_, "peg", "a"), "tools[0].format.syntax");
  refuse({{"type", "custom"}}, "tools[0].name");
  refuse({{"type", "custom"}, {"name", "a"}, {"format", "text"}}, "tools[0].format");
  refuse({{"type", "custom"}, {"name", "a"}, {"format", {{"type", "grammar"}}}},
         "tools[0].format.syntax");
}

TEST_F(CustomToolTest, InputsOfOtherFormsAreRead) {
  EXPECT_EQ(custom_input(R"({ "input" : "a" })"), "a");
  EXPECT_EQ(custom_input(R"({"note": 1, "input": "a"})"), "a");
  EXPECT_EQ(custom_input(R"({"patch": "a"})"), R"({"patch": "a"})");
  EXPECT_EQ(custom_input(R"({"input": "a\)"), "a") << "cut off";
  EXPECT_EQ(custom_input(""), "");
}

TEST_F(AgentsTest, AMessageHasItsBlocks) {
  const Json body = {{"max_tokens", 50},
                     {"messages", messages_},
                     {"tools", {tool_}},
                     {"thinking", {{"type", "adaptive"}}}};
  const Json message = parsed(post(kMessages, body));
  ASSERT_EQ(message["content"].size(), 3u) << message;
  EXPECT_EQ(message["content"][0]["thinking"], "Hm.");
  EXPECT_EQ(message["content"][1]["text"], "Look.");
  EXPECT_EQ(message["content"][2]["input"], (Json{{"a", 1}}));
  EXPECT_EQ(message["stop_reason"], "tool_use");
  Json streaming = body;
  streaming["stream"] = true;
  const auto events = named_events(post(kMessages, streaming));
  EXPECT_EQ(names_of(events),
            (std::vector<std::string>{
                "message_start", "ping", "content_block_start", "content_block_delta",
                "content_block_stop", "content_block_start", "content_block_delta",
                "content_block_stop", "content_block_start", "content_block_delta",
                "content_block_stop", "message_delta", "message_stop"}));
  std::string json;
  for (const NamedEvent& event : events)
    if (event.data.contains("delta")) json += event.data["delta"].value("partial_json", "");
  EXPECT_EQ(json, "{\"a\": 1}");
  // Without `thinking`, reasoning is not returned.
  Json plain = body;
  plain.erase("thinking");
  EXPECT_EQ(parsed(post(kMessages, plain))["content"][0]["type"], "text");
}

TEST_F(AgentsTest, BlocksBecomeMessages) {
  const Json system = Json::parse(
      R"([{"type": "text", "text": "x-anthropic-billing-header: 1"},
          {"type": "text", "text": "s"}])");
  const Json given = Json::parse(R"([
    {"role": "user", "content": "a"},
    {"role": "assistant", "content": [{"type": "thinking", "thinking": "r", "signature": "x"},
      {"type": "text", "text": "b"},
      {"type": "tool_use", "id": "1", "name": "f", "input": {"k": 2}}]},
    {"role": "user", "content": [
      {"type": "tool_result", "tool_use_id": "1", "content": [{"type": "text", "text": "bad"}],
       "is_error": true},
      {"type": "text", "text": "go on"}]}])");
  EXPECT_EQ(messages_of_anthropic(system, given), Json::parse(R"([
    {"role": "system", "content": "s"}, {"role": "user", "content": "a"},
    {"role": "assistant", "content": "b", "reasoning_content": "r", "tool_calls":
      [{"id": "1", "type": "function", "function": {"name": "f", "arguments": "{\"k\":2}"}}]},
    {"role": "tool", "tool_call_id": "1", "content":
      [{"type": "text", "text": "Error:"}, {"type": "text", "text": "bad"}]},
    {"role": "user", "content": "go on"}])"));
}

TEST_F(AgentsTest, ErrorsOfMessagesHaveAnthropicsForm) {
  const auto exchange = post(kMessages, {{"messages", messages_}});
  EXPECT_EQ(exchange->response.status, 400);
  const Json error = parsed(exchange);
  EXPECT_EQ(error["type"], "error");
  EXPECT_EQ(error["error"]["type"], "invalid_request_error");
  EXPECT_NE(error["error"]["message"].get<std::string>().find("max_tokens"), std::string::npos);
  error_ = "broken";
  const auto events =
      named_events(post(kMessages, {{"messages", messages_}, {"max_tokens", 5}, {"stream", true}}));
  EXPECT_EQ(events.back().data["error"]["message"], "broken");
}

TEST_F(AgentsTest, TokensOfAMessageAreCounted) {
  const Json counted = parsed(post("/v1/messages/count_tokens", {{"messages", messages_}}));
  parsed(post(kMessages, {{"messages", messages_}, {"max_tokens", 5}}));
  EXPECT_EQ(counted["input_tokens"], Json(prompts_.back().size()));
}

TEST_F(AgentsTest, EffortsLimitReasoning) {
  pieces_ = {"a"};
  post(kResponses, {{"input", "hi"}, {"reasoning", {{"effort", "low"}}}});
  EXPECT_TRUE(options_.constrain != nullptr);
  post(kResponses, {{"input", "hi"}, {"reasoning", {{"effort", "high"}}}});
  EXPECT_TRUE(options_.constrain == nullptr);
  refused(post(kResponses, {{"input", "hi"}, {"reasoning", {{"effort", "huge"}}}}), 400,
          "reasoning.effort");
}

}  // namespace
}  // namespace fovea::serve
