#include "serve/routes/api.h"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <map>
#include <set>

#include "api_fixture.h"
#include "fovea/core/error.h"
#include "fovea/core/machine.h"
#include "serve/generation/tool_calls.h"
#include "serve/request/fields.h"
#include "serve/routes/response_json.h"

namespace fovea::serve {
namespace {

TEST_F(ApiTest, ListsModels) {
  EXPECT_EQ(parsed(ask("GET", "/v1/models"))["data"][1]["id"], "second/model");
  EXPECT_EQ(parsed(ask("GET", "/v1/models/second/model"))["id"], "second/model");
  refused(ask("GET", "/v1/models/none"), 404, "model");
  refused(post(kCompletionPath, {{"model", "none"}, {"prompt", "a"}}), 404, "model");
  refused(post(kCompletionPath, {{"model", "second/model"}, {"prompt", "a"}}), 400, "model");
  refused(post("/v1/embeddings", {{"model", "first"}, {"input", "a"}}), 400, "model", "embeddings");
  EXPECT_EQ(parsed(ask("GET", "/health"))["status"], "ok");
  EXPECT_NE(ask("GET", "/metrics")->response.body.find("fovea_cache_bytes{model=\"first\"} 0\n"),
            std::string::npos);
}

TEST_F(ApiTest, TellsLoadBalancersWhetherItWantsRequests) {
  const auto health = [](const http::Router& router) {
    http::Request request;
    request.method = "GET";
    request.path = "/health";
    const auto exchange = std::make_shared<http::FakeExchange>();
    std::get<const http::Route*>(router.find(request))->handler(request, exchange);
    const http::Response& response = exchange->response;
    const bool again = !response.headers.empty() && response.headers[0].first == "Retry-After";
    EXPECT_EQ(again, response.status == 503);
    return std::to_string(response.status) + " " + response.body;
  };
  EXPECT_EQ(health(router_), "200 {\"status\":\"ok\"}\n");
  api_.readiness() = Readiness::draining;
  EXPECT_EQ(health(router_), "503 {\"status\":\"draining\"}\n");
  api_.readiness() = Readiness::loading;
  EXPECT_EQ(health(loading_router(api_.readiness())), "503 {\"status\":\"loading\"}\n");
}

TEST_F(ApiTest, ReportsTheVersionOfTheProgram) {
  EXPECT_EQ(parsed(ask("GET", "/version")), (Json{{"version", version()}}));
}

TEST_F(ApiTest, CompletesAChat) {
  const Json json = parsed(post(kChatPath, chat({{"n", 2}})));
  EXPECT_EQ(json["object"], "chat.completion");
  EXPECT_EQ(json["model"], "first");
  EXPECT_EQ(json["choices"].size(), 2u);
  EXPECT_EQ(json["choices"][1]["index"], 1);
  EXPECT_EQ(json["choices"][0]["message"]["content"], "Hello");
  EXPECT_EQ(json["choices"][0]["finish_reason"], "stop");
  EXPECT_TRUE(json["choices"][0]["logprobs"].is_null());
  EXPECT_EQ(json["usage"]["completion_tokens"], 6);
  EXPECT_EQ(json["usage"]["prompt_tokens"], prompts_[0].size());
  EXPECT_EQ(options_.max_tokens, 64 - static_cast<int64_t>(prompts_[0].size()));
}

TEST_F(ApiTest, CompletesSeveralPrompts) {
  finish_ = infer::FinishReason::length;
  const Json json = parsed(
      post(kCompletionPath, {{"prompt", {"a", "b"}}, {"n", 2}, {"echo", true}, {"max_tokens", 5}}));
  ASSERT_EQ(json["choices"].size(), 4u);
  EXPECT_EQ(json["choices"][1]["text"], "aHello");
  EXPECT_EQ(json["choices"][2]["text"], "bHello");
  EXPECT_EQ(json["choices"][3]["finish_reason"], "length");
  post(kCompletionPath, {{"prompt", {1, 2, 3}}});
  EXPECT_EQ(prompts_.back(), (std::vector<int32_t>{1, 2, 3}));
  EXPECT_EQ(options_.max_tokens, 16) << "OpenAI's default";
  post(kCompletionPath, {{"prompt", {{1, 2}, {3}}}});
  EXPECT_EQ(prompts_.back(), std::vector<int32_t>{3});
}

TEST_F(ApiTest, StreamsChunksInOrder) {
  const auto exchange =
      post(kChatPath, chat({{"stream", true}, {"stream_options", {{"include_usage", true}}}}));
  EXPECT_EQ(exchange->response.content_type, "text/event-stream; charset=utf-8");
  EXPECT_TRUE(exchange->finished);
  const std::vector<Json> all = events(exchange);
  ASSERT_EQ(all.size(), 6u);
  EXPECT_EQ(all[0]["choices"][0]["delta"], (Json{{"role", "assistant"}, {"content", ""}}));
  EXPECT_EQ(all[1]["choices"][0]["delta"], (Json{{"content", "Hel"}}));
  EXPECT_EQ(all[2]["choices"][0]["delta"], (Json{{"content", "lo"}}));
  EXPECT_EQ(all[3]["choices"][0]["delta"], Json::object());
  EXPECT_EQ(all[3]["choices"][0]["finish_reason"], "stop");
  EXPECT_EQ(all[4]["choices"], Json::array());
  EXPECT_EQ(all[4]["usage"]["completion_tokens"], 3);
  EXPECT_EQ(all[5], "[DONE]");
  for (int i = 0; i < 5; ++i) {
    EXPECT_EQ(all[i]["id"], all[0]["id"]);
    EXPECT_EQ(all[i]["object"], "chat.completion.chunk");
    EXPECT_EQ(all[i]["usage"].is_null(), i < 4);
  }
}

TEST_F(ApiTest, StreamsCompletions) {
  const auto all =
      events(post(kCompletionPath, {{"prompt", "a"}, {"stream", true}, {"logprobs", 1}}));
  ASSERT_EQ(all.size(), 4u);
  EXPECT_EQ(all[0]["choices"][0]["text"], "Hel");
  EXPECT_EQ(all[1]["choices"][0]["text"], "lo");
  EXPECT_EQ(all[1]["choices"][0]["logprobs"]["tokens"].size(), 2u) << "with the empty piece";
  EXPECT_EQ(all[2]["choices"][0]["finish_reason"], "stop");
  EXPECT_EQ(all[3], "[DONE]");
  EXPECT_FALSE(all[0].contains("usage"));
}

TEST_F(ApiTest, ReturnsLogprobs) {
  const Json json = parsed(post(kChatPath, chat({{"logprobs", true}, {"top_logprobs", 2}})));
  const Json content = json["choices"][0]["logprobs"]["content"];
  ASSERT_EQ(content.size(), 3u);
  EXPECT_EQ(content[0]["logprob"], -0.5);
  EXPECT_EQ(content[0]["top_logprobs"].size(), 2u);
  EXPECT_EQ(content[0]["top_logprobs"][1]["logprob"], -9999) << "JSON has no infinity";
  EXPECT_EQ(options_.logprobs, 2);
  const Json completion = parsed(post(kCompletionPath, {{"prompt", "a"}, {"logprobs", 0}}));
  EXPECT_EQ(completion["choices"][0]["logprobs"]["token_logprobs"].size(), 3u);
}

// Regression: the offsets of tokens in a text were in bytes.
TEST_F(ApiTest, CountsTheCharactersBeforeEachToken) {
  LogprobList list(*tokenizer_, LogprobStyle::completion);
  const std::vector<int32_t> ids = tokenizer_->encode("n\u00E9.\u4E2D.");
  for (const int32_t id : ids) list.add(id, {});
  const Json json = Json::parse(list.take());
  std::vector<int64_t> offsets;  // of the full stops
  for (size_t i = 0; i < ids.size(); ++i)
    if (tokenizer_->bytes_of(ids[i]) == ".") offsets.push_back(json["text_offset"][i]);
  EXPECT_EQ(offsets, (std::vector<int64_t>{2, 4}));
}

// Names of special tokens in a prompt are text unless the request says otherwise.
TEST_F(ApiTest, ParsesNamesOfSpecialTokensOnRequest) {
  const std::string prompt = std::string(tokenizer_->text_of(*tokenizer_->eos_id())) + "a";
  const auto tokens = [&](const Json& more) {
    Json body = {{"prompt", prompt}};
    body.update(more);
    return parsed(post(kCompletionPath, body))["usage"]["prompt_tokens"].get<int64_t>();
  };
  EXPECT_EQ(tokens({{"parse_special", true}}), 2);
  EXPECT_GT(tokens({{"parse_special", false}}), 2);
  EXPECT_EQ(tokens(Json::object()), tokens({{"parse_special", true}}));
}

TEST_F(ApiTest, ReturnsStatus429IfTheEngineIsFull) {
  most_taken_ = 0;
  const auto exchange = post(kChatPath, chat());
  EXPECT_EQ(exchange->response.status, 429);
  EXPECT_EQ(exchange->response.headers[0].first, "Retry-After");
  most_taken_ = 1'000'000;
  EXPECT_EQ(post(kChatPath, chat())->response.status, 200);
  generator().engine->most_waiting = 0;
  const size_t submitted = prompts_.size();
  EXPECT_EQ(post(kChatPath, chat())->response.status, 429);
  EXPECT_EQ(prompts_.size(), submitted) << "nothing is submitted";
}

TEST_F(ApiTest, EndsTheResponseOnAnEngineError) {
  error_ = "numbers are not finite";
  EXPECT_EQ(post(kChatPath, chat())->response.status, 500);
  const auto exchange = post(kChatPath, chat({{"stream", true}}));
  const std::vector<Json> all = events(exchange);
  EXPECT_EQ(all.back()["error"]["message"], "numbers are not finite");
  EXPECT_TRUE(exchange->finished);
  generator().engine->submit = [](const auto&, const auto&, const auto&, const auto&) -> uint64_t {
    throw Error(ErrorKind::InvalidArgument, "too long");
  };
  EXPECT_EQ(post(kChatPath, chat())->response.status, 400);
}

// The request receives the reduced limit, so that a JSON constraint completes its value in time.
TEST_F(ApiTest, LimitsMaxTokensByTheCache) {
  most_room_ = 40;
  post(kChatPath, chat());
  EXPECT_EQ(options_.max_tokens, 40 - static_cast<int64_t>(prompts_[0].size()));
  post(kChatPath, chat({{"max_tokens", 3}}));
  EXPECT_EQ(options_.max_tokens, 3);
}

TEST_F(ApiTest, EndsARequestAfterMaxTime) {
  model_->most_seconds = 1e-9;
  refused(post(kChatPath, chat()), 503, nullptr, "--max-time");
  refused(post(kChatPath, chat({{"stream", true}})), 503, nullptr, "--max-time");
  model_->most_seconds = 100;
  EXPECT_EQ(post(kChatPath, chat())->response.status, 200);
}

TEST_F(ApiTest, CancelsWhenTheClientDisconnects) {
  holding_ = true;
  const auto exchange = post(kCompletionPath, {{"prompt", {"a", "b"}}});
  exchange->leave();
  EXPECT_EQ(cancelled_, (std::vector<uint64_t>{1, 2}));
  infer::Event event;
  event.id = 65;
  EXPECT_FALSE(sinks_[0](event));
}

TEST_F(ApiTest, PassesTheExpectedVariablesToTemplates) {
  post(kChatPath,
       {{"messages",
         {{{"role", "developer"},
           {"content", {{{"type", "text"}, {"text", "a"}}, {{"type", "text"}, {"text", "b"}}}}},
          {{"role", "assistant"},
           {"content", nullptr},
           {"tool_calls", {{{"function", {{"name", "f"}, {"arguments", "{\"x\": 1}"}}}}}}}}},
        {"chat_template_kwargs", {{"enable_thinking", false}}},
        {"tools", {{{"type", "function"}, {"function", {{"name", "f"}}}}}}});
  const Json messages = Json::parse(conversation_.messages.json());
  EXPECT_EQ(messages[0], (Json{{"role", "system"}, {"content", "a\nb"}}));
  EXPECT_EQ(messages[1]["tool_calls"][0]["function"]["arguments"], (Json{{"x", 1}}));
  EXPECT_EQ(conversation_.variables.json(), "{\"enable_thinking\":false}");
  EXPECT_NE(conversation_.tools.json().find("\"f\""), std::string::npos);
}

TEST_F(ApiTest, FindsToolCalls) {
  const Json tools = {{{"type", "function"}, {"function", {{"name", "f"}}}}};
  pieces_ = {"Well. <to", "ol_call>{\"name\": \"f\", ", "\"arguments\": {\"x\": 1}}</tool_call>"};
  const Json choice = parsed(post(kChatPath, chat({{"tools", tools}})))["choices"][0];
  EXPECT_EQ(choice["message"]["content"], "Well.");
  EXPECT_EQ(choice["message"]["tool_calls"][0]["function"]["arguments"], "{\"x\":1}");
  EXPECT_EQ(choice["finish_reason"], "tool_calls");
  const auto all = events(post(kChatPath, chat({{"tools", tools}, {"stream", true}})));
  ASSERT_EQ(all.size(), 5u);
  EXPECT_EQ(all[1]["choices"][0]["delta"]["content"], "Well.");
  EXPECT_EQ(all[2]["choices"][0]["delta"]["tool_calls"][0]["function"]["name"], "f");
  EXPECT_EQ(all[2]["choices"][0]["delta"]["tool_calls"][0]["id"].get<std::string>().size(), 9u);
  EXPECT_EQ(all[3]["choices"][0]["finish_reason"], "tool_calls");
  EXPECT_EQ(parsed(post(kChatPath, chat()))["choices"][0]["finish_reason"], "stop");
  refused(post(kChatPath,
               chat({{"tools", tools},
                     {"tool_choice", {{"type", "function"}, {"function", {{"name", "g"}}}}}})),
          400, "tool_choice");
}

TEST_F(ApiTest, ReadsIntegersWithAPointAndATopPOfZero) {
  const auto ask_for = [&](const Json& fields) { return post(kChatPath, chat(fields)); };
  EXPECT_EQ(ask_for({{"max_tokens", 5.0}, {"seed", 1000.0}, {"top_p", 0}})->response.status, 200);
  EXPECT_EQ(options_.max_tokens, 5);
  EXPECT_EQ(options_.sampling.seed, 1000u);
  EXPECT_GT(options_.sampling.top_p, 0);
  refused(ask_for({{"max_tokens", 5.5}}), 400, "max_tokens");
  refused(ask_for({{"seed", 1e19}}), 400, "seed");
}

TEST_F(ApiTest, ContinuesTheLastMessage) {
  model_->facts.context = 1000;
  const Json messages = {{{"role", "user"}, {"content", "a"}},
                         {{"role", "assistant"}, {"content", "So it "}}};
  const auto ask_for = [&](const Json& conversation, bool prompt) {
    return post(kChatPath, {{"messages", conversation},
                            {"continue_final_message", true},
                            {"add_generation_prompt", prompt}});
  };
  EXPECT_EQ(ask_for(messages, false)->response.status, 200);
  EXPECT_TRUE(tokenizer_->decode(prompts_.back()).ends_with("So it "));
  refused(ask_for(messages, true), 400, "continue_final_message", "add_generation_prompt");
  refused(ask_for(Json::array({messages[0]}), false), 400, "continue_final_message", "assistant");
}

TEST_F(ApiTest, GivesCallsAsTheTemplateExpectsThem) {
  model_->facts.context = 1000;
  const Json call = {{"id", "call_0123456789abcdef"},
                     {"type", "function"},
                     {"function", {{"name", "f"}, {"arguments", "{\"x\": 1}"}}}};
  const Json messages = {{{"role", "system"}, {"content", "Be kind."}},
                         {{"role", "user"}, {"content", "a"}},
                         {{"role", "assistant"}, {"content", "b"}, {"tool_calls", {call}}},
                         {{"role", "tool"}, {"tool_call_id", call["id"]}, {"content", "c"}}};
  text::TemplateHabits& habits = generator().chat->habits;
  habits.text_arguments = true;
  habits.long_ids = habits.shows_system = habits.calls_with_text = habits.calls_with_empty = false;
  post(kChatPath, {{"messages", messages}});
  const Json given = Json::parse(conversation_.messages.json());
  ASSERT_EQ(given.size(), 4u) << given;
  EXPECT_EQ(given[0]["content"], "Be kind.\n\na");
  EXPECT_EQ(given[1], (Json{{"role", "assistant"}, {"content", "b"}}));
  EXPECT_TRUE(given[2]["content"].is_null());
  const Json& renewed = given[2]["tool_calls"][0];
  EXPECT_EQ(renewed["function"]["arguments"], "{\"x\": 1}");
  EXPECT_EQ(renewed["id"].get<std::string>().size(), 9u);
  EXPECT_EQ(renewed["id"], given[3]["tool_call_id"]);
}

TEST_F(ApiTest, RefusesInvalidCombinations) {
  refused(post(kCompletionPath, {{"prompt", std::string(1000, 'z')}}), 400, "prompt", "context");
  refused(post(kCompletionPath, {{"prompt", ""}}), 400, "prompt");
  refused(post(kCompletionPath, {{"prompt", Json::array()}}), 400, "prompt");
  refused(post(kCompletionPath, {{"prompt", {""}}}), 400, "prompt");
  refused(post(kCompletionPath, {{"prompt", "a"}, {"best_of", 2}}), 400, "best_of");
  refused(post(kChatPath, chat({{"top_logprobs", 2}})), 400, "logprobs");
  refused(post(kCompletionPath, Json::object()), 400, "prompt", "missing");
  generator().chat.reset();
  refused(post(kChatPath, chat()), 400, "messages", "chat template");
}

TEST_F(ApiTest, TokenizesAndDetokenizes) {
  const Json json = parsed(post("/tokenize", {{"content", "So é"}, {"with_pieces", true}}));
  EXPECT_EQ(json["count"], json["tokens"].size());
  EXPECT_EQ(json["tokens"][0]["piece"].get<std::string>()[0], 'S');
  const Json ids = parsed(post("/tokenize", {{"content", "So é"}}))["tokens"];
  EXPECT_EQ(parsed(post("/detokenize", {{"tokens", ids}}))["content"], "So é");
  refused(post("/detokenize", {{"tokens", {tokenizer_->size()}}}), 400, "tokens");
}

TEST_F(ApiTest, ReturnsAttentionAndHiddenStates) {
  const Json attention = {{"layer", 2}, {"head", 1}, {"top_k", 2}};
  const Json asked = {{"attention", attention}, {"hidden_states", {{"layer", 3}}}};
  const Json choice = parsed(post(
      kCompletionPath, {{"prompt", {83, 111}}, {"fovea", asked}, {"max_tokens", 3}}))["choices"][0];
  EXPECT_EQ(trace_options_.attention->layer, 2);
  EXPECT_EQ(trace_options_.attention->head, 1);
  EXPECT_EQ(trace_options_.attention->top_k, 2);
  EXPECT_EQ(trace_options_.hidden, 3);
  const Json shown = choice["fovea"];
  EXPECT_EQ(shown["attention"]["layer"], 2);
  ASSERT_EQ(shown["attention"]["tokens"].size(), 3u);
  const Json key = {{"position", 0}, {"token", tokenizer_->bytes_of(83)}, {"weight", 0.75}};
  EXPECT_EQ(shown["attention"]["tokens"][1],
            (Json{{"token", tokenizer_->bytes_of(65)}, {"keys", Json::array({key})}}));
  EXPECT_EQ(shown["hidden_states"]["tokens"][2]["values"], (Json{1.5, -2.0}));

  size_t tokens = 0;
  for (const Json& event : events(post(kChatPath, chat({{"stream", true}, {"fovea", asked}})))) {
    if (event.is_string() || !event["choices"][0].contains("fovea")) continue;
    tokens += event["choices"][0]["fovea"]["attention"]["tokens"].size();
  }
  EXPECT_EQ(tokens, 3u);
  EXPECT_FALSE(parsed(post(kCompletionPath, {{"prompt", "a"}}))["choices"][0].contains("fovea"));
}

TEST_F(ApiTest, RefusesMissingLayersAndHeads) {
  const auto ask_for = [&](const Json& asked) {
    return post(kCompletionPath, {{"prompt", "a"}, {"fovea", asked}});
  };
  EXPECT_EQ(ask_for({{"attention", Json::object()}})->response.status, 200);
  EXPECT_EQ(trace_options_.attention->top_k, 8);
  EXPECT_EQ(ask_for({{"attention", nullptr}})->response.status, 200);
  EXPECT_FALSE(trace_options_.attention);
  refused(ask_for({{"attention", {{"layer", 3}}}}), 400, "fovea.attention.layer", "at most 2");
  refused(ask_for({{"attention", {{"head", 2}}}}), 400, "fovea.attention.head", "at most 1");
  refused(ask_for({{"attention", {{"top_k", 0}}}}), 400, "fovea.attention.top_k");
  refused(ask_for({{"attention", 1}}), 400, "fovea.attention");
  refused(ask_for({{"hidden_states", {{"layer", 4}}}}), 400, "fovea.hidden_states.layer");
  refused(ask_for("attention"), 400, "fovea");
}

TEST_F(ApiTest, RefusesBodiesThatAreNotObjects) {
  for (const char* body :
       {"", "{", "[]", "null", "1e400", "{\"prompt\": NaN}", "{\"a\": \"\xff\"}"}) {
    refused(ask("POST", kCompletionPath, body), 400, nullptr, "body");
  }
  refused(ask("POST", kCompletionPath, std::string(100'000, '[')), 400, nullptr, "nested");
  EXPECT_EQ(post(kCompletionPath, {{"prompt", "a"}, {"unknown", {1, 2}}})->response.status, 200);
}

// Returns valid and invalid values for the type and limits of a field.
std::vector<Json> hostile_values(const FieldInfo& field) {
  std::vector<Json> all = {true,
                           "text",
                           "",
                           std::string(100'000, 'x'),
                           0,
                           -1,
                           1,
                           1.5,
                           2147483648LL,
                           9007199254740993LL,
                           9223372036854775808ULL,
                           1e308,
                           -1e308,
                           Json::array(),
                           Json::object(),
                           {1, 2},
                           {"a"},
                           {{1}},
                           {{{"a", 1}}},
                           {{"a", "b"}},
                           {{"1", 5}},
                           {{"999999999", 5}},
                           {{"-1", 5}},
                           Json::array({nullptr}),
                           Json::array({-1})};
  for (const double edge : {field.least, field.most}) {
    for (const double step : {-1.0, 0.0, 1.0}) {
      if (std::abs(edge) < 9e15) all.push_back(static_cast<int64_t>(edge + step));
      all.push_back(edge + step * 1e-3);
    }
  }
  return all;
}

// Returns a reference to the value of a field; "a.b" is the field b of the object a.
Json& field_of(Json& body, std::string name) {
  std::replace(name.begin(), name.end(), '.', '/');
  return body[Json::json_pointer("/" + name)];
}

// Returns a valid request for the route.
Json valid_body(const std::string& path) {
  const Json messages = {{{"role", "user"}, {"content", "hi"}}};
  const std::map<std::string, Json> bodies = {
      {"/v1/chat/completions", {{"messages", messages}}},
      {"/v1/completions", {{"prompt", "a"}}},
      {"/tokenize", {{"content", "a"}}},
      {"/detokenize", {{"tokens", {1}}}},
      {"/v1/embeddings", {{"model", "second/model"}, {"input", "a"}}},
      {"/embed", {{"model", "second/model"}, {"inputs", "a"}}},
      {"/embed_sparse", {{"model", "fifth"}, {"inputs", "a"}}},
      {"/embed_all", {{"model", "sixth"}, {"inputs", "a"}}},
      {"/rerank", {{"model", "third"}, {"query", "a"}, {"texts", {"b", "c"}}}},
      {"/v1/classify", {{"model", "fourth"}, {"input", "a"}}},
      {"/predict", {{"model", "fourth"}, {"inputs", "a"}}},
      {"/token-classification", {{"model", "words"}, {"inputs", "a"}}},
      {"/question-answering",
       {{"model", "answers"}, {"inputs", {{"question", "a"}, {"context", "the fox"}}}}},
      {"/fill-mask", {{"model", "masks"}, {"inputs", "the [MASK]"}}},
      {"/zero-shot-classification",
       {{"model", "fourth"}, {"inputs", "a"}, {"parameters", {{"candidate_labels", {"b", "c"}}}}}},
      {"/v1/score", {{"model", "third"}, {"text_1", "a"}, {"text_2", "b"}}},
      {"/v1/rerank", {{"model", "third"}, {"query", "a"}, {"documents", {"b", "c"}}}},
      {"/similarity",
       {{"model", "second/model"}, {"inputs", {{"source_sentence", "a"}, {"sentences", {"b"}}}}}},
      {"/translate", {{"q", "a"}, {"source", "de"}, {"target", "en"}}},
      {"/v1/responses", {{"input", "hi"}}},
      {"/v1/messages", {{"messages", messages}, {"max_tokens", 5}}},
      {"/v1/messages/count_tokens", {{"messages", messages}}},
      {"/completion", {{"prompt", "a"}}},
      {"/infill", {{"input_prefix", "a"}}},
      {"/apply-template", {{"messages", messages}}},
      {"/embedding", {{"model", "second/model"}, {"content", "a"}}},
      {"/decode", {{"ids", {1}}}},
      {"/api/chat", {{"messages", messages}}},
      {"/api/generate", {{"prompt", "hi"}}},
      {"/api/embed", {{"model", "second/model"}, {"input", "a"}}},
      {"/api/embeddings", {{"model", "second/model"}, {"prompt", "a"}}}};
  return bodies.at(path);
}

TEST_F(ApiTest, ChecksTypeAndLimitsOfEveryField) {
  add_taggers();
  int count = 0;
  for (const auto& [path, fields] : routes_with_fields()) {
    // See tuning_routes_test.cc, batches_test.cc and llama_test.cc.
    if (path == std::string(FineTuningRequest::kPath) || path == std::string(BatchRequest::kPath) ||
        path == std::string(InfillRequest::kPath) || path == std::string(DetectRequest::kPath))
      continue;
    for (const FieldInfo& field : fields) {
      Json body = valid_body(path);
      EXPECT_EQ(post(path, body)->response.status, 200) << path;
      const bool names_model = field.name == std::string("model");
      for (const Json& value : hostile_values(field)) {
        field_of(body, field.name) = value;
        const auto exchange = post(path, body);
        const int status = exchange->response.status;
        ++count;
        if (status == 200) continue;
        const Json error = parsed(exchange)["error"];
        const std::string what = std::string(field.name) + " = " + value.dump().substr(0, 80);
        EXPECT_TRUE(status == 400 || status == 422 || (status == 404 && names_model)) << what;
        const Json message = error.is_object() ? error["message"] : error;
        const bool names_field = error.is_object() && error.contains("param");
        ASSERT_TRUE(!names_field || error["param"].is_string()) << what << ": " << error;
        ASSERT_TRUE(message.is_string()) << what;
        EXPECT_NE(message.get<std::string>().find(field.name), std::string::npos) << message;
        EXPECT_LT(message.get<std::string>().size(), 500u) << what;
      }
      if (names_model) continue;  // a different model would respond
      // Or prompt or inputs, of which one is required.
      const bool one_of = path == std::string(TokenizeRequest::kPath) ||
                          path == std::string(LlamaEmbedRequest::kPath);
      const bool required = field.required || (one_of && field.name == "content");
      const auto as_expected = [&] {
        const int status = post(path, body)->response.status;
        return required ? status == 400 || status == 422 : status == 200;
      };
      field_of(body, field.name) = nullptr;
      EXPECT_TRUE(as_expected()) << field.name << " of " << path;
      body = valid_body(path);
      const size_t dot = field.name.rfind('.');
      Json& parent = dot == std::string::npos ? body : field_of(body, field.name.substr(0, dot));
      if (parent.is_object()) parent.erase(field.name.substr(dot + 1));
      EXPECT_TRUE(as_expected()) << field.name << " of " << path;
    }
  }
  EXPECT_GT(count, 3000);
}

TEST_F(ApiTest, AcceptsNumbersAtTheirLimitsOnly) {
  // The limits of these fields depend on the model or on other fields; those of `seed` cannot be
  // represented exactly as a double.
  const std::set<std::string> bounded = {"best_of",
                                         "seed",
                                         "dimensions",
                                         "embd_normalize",
                                         "options.num_ctx",
                                         "options.seed",
                                         "fovea.attention.layer",
                                         "fovea.attention.head",
                                         "fovea.hidden_states.layer",
                                         "parameters.max_seq_len"};
  add_taggers();
  for (const auto& [route, fields] : routes_with_fields()) {
    const std::string path = route;
    if (path == FineTuningRequest::kPath || path == InfillRequest::kPath ||
        path == BatchRequest::kPath)
      continue;
    for (const FieldInfo& field : fields) {
      const bool whole = field.type == FieldType::integer;
      if ((!whole && field.type != FieldType::number) || bounded.contains(field.name)) continue;
      const auto status = [&](double value) {
        Json body = valid_body(path);
        if (field.name == "top_logprobs") body["logprobs"] = true;
        field_of(body, field.name) = whole ? Json(static_cast<int64_t>(value)) : Json(value);
        const int got = post(path, body)->response.status;
        return got == 422 ? 400 : got;  // of some routes
      };
      EXPECT_EQ(status(field.least), 200) << field.name;
      EXPECT_EQ(status(field.most), 200) << field.name;
      EXPECT_EQ(status(field.least - (whole ? 1 : 1e-7)), 400) << field.name;
      EXPECT_EQ(status(field.most + (whole ? 1 : 1e-7)), 400) << field.name;
    }
  }
}

TEST_F(ApiTest, AppliesDefaultsOfRequestAndModel) {
  infer::GenerateOptions of_model = program_defaults();
  of_model.sampling.temperature = 0.25f;
  of_model.sampling.top_k = 7;
  of_model.max_tokens = 9;
  of_model.beams = 4;
  set_defaults(generator(), of_model);
  post(kCompletionPath, {{"prompt", "a"}, {"top_p", 0.5}});
  EXPECT_FLOAT_EQ(options_.sampling.temperature, 0.25f);
  EXPECT_EQ(options_.sampling.top_k, 7);
  EXPECT_FLOAT_EQ(options_.sampling.top_p, 0.5f);
  EXPECT_FLOAT_EQ(options_.sampling.min_p, infer::Sampling().min_p);
  EXPECT_EQ(options_.max_tokens, 9);
  EXPECT_EQ(options_.beams, 1);
  post(kCompletionPath, {{"prompt", "a"}, {"temperature", 0}, {"max_tokens", 2}});
  EXPECT_EQ(options_.sampling.temperature, 0);
  EXPECT_EQ(options_.max_tokens, 2);
}

}  // namespace
}  // namespace fovea::serve
