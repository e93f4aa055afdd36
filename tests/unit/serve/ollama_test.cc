// The routes of Ollama's API.

#include <gtest/gtest.h>

#include <regex>

#include "api_fixture.h"
#include "serve/protocols/ollama_format.h"
#include "serve/protocols/ollama_messages.h"
#include "serve/protocols/vectors.h"

namespace fovea::serve {
namespace {

const std::string kChat = "/api/chat", kGenerate = "/api/generate";

class OllamaTest : public ApiTest {
 protected:
  void SetUp() override {
    ApiTest::SetUp();
    model_->facts.context = 512;
    api_.set_warn([this](const std::string& line) { warnings_.push_back(line); });
  }

  // The objects of a stream, one a line.
  std::vector<Json> lines(const std::shared_ptr<http::FakeExchange>& exchange) {
    EXPECT_EQ(exchange->response.content_type, "application/x-ndjson") << exchange->response.body;
    EXPECT_TRUE(exchange->finished);
    std::vector<Json> all;
    for (const std::string& piece : exchange->pieces) {
      EXPECT_TRUE(piece.empty() || piece.ends_with('\n'));
      for (size_t begin = 0, end = 0; begin < piece.size(); begin = end + 1) {
        end = piece.find('\n', begin);
        all.push_back(Json::parse(piece.substr(begin, end - begin)));
      }
    }
    return all;
  }
  Json whole(const std::string& path, Json body) {
    body["stream"] = false;
    const auto exchange = post(path, body);
    EXPECT_EQ(exchange->response.status, 200) << exchange->response.body;
    return parsed(exchange);
  }
  bool warned(const std::string& text) const {
    return std::any_of(warnings_.begin(), warnings_.end(), [&](const std::string& line) {
      return line.find(text) != std::string::npos;
    });
  }
  void reason() { generator().message = {nullptr, "<think>", "</think>"}; }

  std::vector<std::string> warnings_;
  const Json tools_ = {
      {{"type", "function"},
       {"function",
        {{"name", "look"},
         {"parameters", {{"type", "object"}, {"properties", {{"at", {{"type", "string"}}}}}}}}}}};
};

TEST_F(OllamaTest, StreamsAChatByDefault) {
  const auto all = lines(post(kChat, chat({{"model", "first:latest"}})));
  ASSERT_EQ(all.size(), 3u);
  EXPECT_EQ(all[0]["message"], (Json{{"role", "assistant"}, {"content", "Hel"}}));
  EXPECT_EQ(all[1]["message"]["content"], "lo");
  EXPECT_EQ(all[1]["done"], false);
  EXPECT_FALSE(all[1].contains("done_reason"));
  EXPECT_EQ(all[2]["message"], (Json{{"role", "assistant"}, {"content", ""}}));
  EXPECT_EQ(all[2]["done"], true);
  EXPECT_EQ(all[2]["done_reason"], "stop");
  EXPECT_EQ(all[2]["eval_count"], 3);
  EXPECT_EQ(all[2]["prompt_eval_count"], prompts_[0].size());
  for (const char* key :
       {"total_duration", "load_duration", "prompt_eval_duration", "eval_duration"})
    EXPECT_TRUE(all[2][key].is_number_integer()) << key;
  for (const Json& line : all) {
    EXPECT_EQ(line["model"], "first:latest") << "the name of the request";
    const std::regex time(R"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{9}Z)");
    EXPECT_TRUE(std::regex_match(line["created_at"].get<std::string>(), time));
  }
}

TEST_F(OllamaTest, AnswersAChatInOneObject) {
  finish_ = infer::FinishReason::length;
  const Json json = whole(kChat, chat());
  EXPECT_EQ(json["model"], "first");
  EXPECT_EQ(json["message"], (Json{{"role", "assistant"}, {"content", "Hello"}}));
  EXPECT_EQ(json["done"], true);
  EXPECT_EQ(json["done_reason"], "length");
  EXPECT_EQ(json["eval_count"], 3);
  EXPECT_FALSE(json.contains("logprobs"));
}

TEST_F(OllamaTest, GeneratesATextWithTheChatTemplate) {
  const Json json = whole(kGenerate, {{"prompt", "hi"}, {"system", "Be brief."}});
  EXPECT_EQ(json["response"], "Hello");
  EXPECT_FALSE(json.contains("message"));
  EXPECT_FALSE(json.contains("context"));
  const Json messages = Json::parse(conversation_.messages.json());
  ASSERT_EQ(messages.size(), 2u);
  EXPECT_EQ(messages[0]["content"], "Be brief.");
  EXPECT_EQ(messages[1]["content"], "hi");
  const auto all = lines(post(kGenerate, {{"prompt", "hi"}}));
  ASSERT_EQ(all.size(), 3u);
  EXPECT_EQ(all[0]["response"], "Hel");
  EXPECT_EQ(all[2]["response"], "");
  EXPECT_EQ(all[2]["done"], true);
}

TEST_F(OllamaTest, ContinuesARawPrompt) {
  const Json json = whole(kGenerate, {{"prompt", "hi"}, {"raw", true}});
  EXPECT_EQ(json["response"], "Hello");
  EXPECT_EQ(prompts_.back(), tokenizer_->encode("hi"));
  EXPECT_EQ(options_.max_tokens, 512 - std::ssize(prompts_.back())) << "no limit by default";
  refused_plainly(post(kGenerate, {{"prompt", "a"}, {"raw", true}, {"system", "b"}}), 400,
                  "system");
  refused_plainly(post(kGenerate, {{"prompt", "a"}, {"raw", true}, {"think", true}}), 400, "think");
  refused_plainly(post(kGenerate, {{"prompt", "a"}, {"suffix", "b"}}), 400, "suffix");
  generator().chat.reset();
  EXPECT_EQ(whole(kGenerate, {{"prompt", "hi"}})["response"], "Hello") << "without a template";
}

TEST_F(OllamaTest, AnswersRequestsThatOnlyLoadTheModel) {
  Json json = parsed(post(kChat, {{"model", "first"}, {"messages", Json::array()}}));
  EXPECT_EQ(json["done_reason"], "load");
  EXPECT_EQ(json["message"]["content"], "");
  json = parsed(post(kGenerate, {{"model", "first"}, {"keep_alive", "5m"}}));
  EXPECT_EQ(json["response"], "");
  EXPECT_EQ(json["done"], true);
  json = parsed(post(kGenerate, {{"model", "first"}, {"keep_alive", 0}}));
  EXPECT_EQ(json["done_reason"], "unload");
  EXPECT_TRUE(prompts_.empty());
}

TEST_F(OllamaTest, AppliesOptions) {
  const Json options = {{"num_predict", 7},
                        {"temperature", 0.5},
                        {"top_k", 5},
                        {"top_p", 0.5},
                        {"min_p", 0.25},
                        {"typical_p", 0.75},
                        {"seed", 9},
                        {"stop", {"x", "y"}},
                        {"repeat_penalty", 1.5},
                        {"presence_penalty", 1},
                        {"mirostat", 2},
                        {"mirostat_tau", 3},
                        {"mirostat_eta", 0.5},
                        {"num_ctx", 512},
                        {"frequency_penalty", 0.5}};
  post(kChat, chat({{"options", options}}));
  EXPECT_EQ(options_.max_tokens, 7);
  EXPECT_EQ(options_.sampling.temperature, 0.5f);
  EXPECT_EQ(options_.sampling.top_k, 5);
  EXPECT_EQ(options_.sampling.top_p, 0.5f);
  EXPECT_EQ(options_.sampling.min_p, 0.25f);
  EXPECT_EQ(options_.sampling.typical_p, 0.75f);
  EXPECT_EQ(options_.sampling.seed, 9u);
  EXPECT_EQ(options_.stop, (std::vector<std::string>{"x", "y"}));
  EXPECT_EQ(options_.sampling.repetition_penalty, 1.5f);
  EXPECT_EQ(options_.sampling.presence_penalty, 1);
  EXPECT_EQ(options_.sampling.mirostat, 2);
  EXPECT_TRUE(warnings_.empty()) << warnings_[0];
  post(kChat, chat({{"options", {{"repeat_penalty", 1.5}, {"repeat_last_n", 0}}}}));
  EXPECT_EQ(options_.sampling.repetition_penalty, 1) << "no tokens are penalised";
  post(kChat, chat({{"options", {{"num_predict", -2}, {"seed", -1}}}}));
  EXPECT_EQ(options_.max_tokens, 512 - std::ssize(prompts_.back()));
}

TEST_F(OllamaTest, NamesWhatItIgnores) {
  post(kChat, chat({{"keep_alive", "5m"},
                    {"options",
                     {{"num_gpu", 1},
                      {"num_thread", 8},
                      {"frobnicate", 1},
                      {"repeat_last_n", 64},
                      {"num_ctx", nullptr}}},
                    {"truncate", true},
                    {"unheard", 1}}));
  for (const char* name : {"options.num_gpu", "options.num_thread", "keep_alive", "frobnicate",
                           "repeat_last_n", "truncate", "unheard"})
    EXPECT_TRUE(warned(name)) << name;
  EXPECT_EQ(warnings_.size(), 7u);
}

TEST_F(OllamaTest, RefusesByName) {
  const auto refuses = [&](const Json& more, const std::string& name) {
    refused_plainly(post(kChat, chat(more)), 400, name);
  };
  refuses({{"options", {{"num_ctx", 513}}}}, "options.num_ctx");
  refuses({{"options", {{"temprature", 1}}}}, "temprature");
  refuses({{"options", {{"tfs_z", 0.5}}}}, "tfs_z");
  refuses({{"options", {{"top_p", 2}}}}, "options.top_p");
  refuses({{"options", 1}}, "options");
  refuses({{"think", "deeply"}}, "think");
  refuses({{"think", true}}, "thinking");
  refuses({{"format", "xml"}}, "format");
  for (const Json& duration : {Json(Json::array()), Json("5x"), Json(""), Json("5m5"), Json("-"),
                               Json("1e400s"), Json(1e12)})
    refuses({{"keep_alive", duration}}, "keep_alive");
  refuses({{"tools", {{{"function", {{"name", "f"}, {"parameters", 1}}}}}}}, "tools");
  refused_plainly(post(kGenerate, {{"prompt", "a"}, {"template", "{{ .Prompt }}"}}), 400,
                  "template");
  refused_plainly(post(kGenerate, {{"prompt", "a"}, {"context", {1, 2}}}), 400, "context");
  EXPECT_EQ(post(kGenerate, {{"prompt", "a"}, {"context", Json::array()}, {"template", ""}})
                ->response.status,
            200);
  refused_plainly(post(kGenerate, {{"prompt", "a"}, {"images", {"aGk="}}}), 400, "images");
  refused_plainly(post(kChat, chat({{"model", "none"}})), 404, "none");
  refused_plainly(post(kChat, chat({{"model", "second/model"}})), 400, "second/model");
  refused_plainly(ask("POST", kChat, "{"), 400, "body");
  most_taken_ = 0;
  refused_plainly(post(kChat, chat()), 429, "too many");
}

TEST_F(OllamaTest, RefusesOddMessages) {
  const auto refuses = [&](const Json& message, const std::string& name) {
    refused_plainly(post(kChat, {{"messages", Json::array({message})}}), 400, name);
  };
  refuses(1, "messages[0]");
  refuses({{"content", "a"}}, "messages[0].role");
  refuses({{"role", 1}, {"content", "a"}}, "messages[0].role");
  refuses({{"role", "user"}, {"content", {{{"type", "text"}, {"text", "a"}}}}},
          "messages[0].content");
  refuses({{"role", "user"}, {"images", 1}}, "messages[0].images");
  refuses({{"role", "user"}, {"images", {1}}}, "messages[0].images[0]");
  refuses({{"role", "user"}, {"images", {"aGk="}}}, "reads no images");
  refuses({{"role", "assistant"}, {"thinking", 1}}, "messages[0].thinking");
  refuses({{"role", "assistant"}, {"tool_calls", 1}}, "messages[0].tool_calls");
  refuses({{"role", "assistant"}, {"tool_calls", {1}}}, "messages[0].tool_calls[0]");
  refuses({{"role", "assistant"}, {"tool_calls", {{{"function", {{"name", 1}}}}}}},
          "messages[0].tool_calls[0].function.name");
  refuses({{"role", "assistant"},
           {"tool_calls", {{{"function", {{"name", "f"}, {"arguments", "{}"}}}}}}},
          "messages[0].tool_calls[0].function.arguments");
  refuses({{"role", "tool"}, {"tool_name", 1}}, "messages[0].tool_name");
  refused_plainly(ask("POST", kChat, "{\"messages\": " + std::string(1000, '[')), 400, "nested");
}

TEST(OllamaMessages, NamesCallsAndTheirResults) {
  const auto call = [](const char* name) {
    return Json{{"function", {{"name", name}, {"arguments", {{"a", 1}}}}}};
  };
  const Json messages = openai_messages({
      {{"role", "User"}, {"content", "hi"}},
      {{"role", "assistant"}, {"thinking", "hm"}, {"tool_calls", {call("f"), call("g")}}},
      {{"role", "tool"}, {"tool_name", "g"}, {"content", "2"}},
      {{"role", "tool"}, {"content", "1"}},
      {{"role", "tool"}, {"tool_call_id", "other"}, {"content", "3"}},
  });
  EXPECT_EQ(messages[0]["role"], "user");
  EXPECT_EQ(messages[1]["reasoning_content"], "hm");
  const Json calls = messages[1]["tool_calls"];
  EXPECT_EQ(calls[0]["function"]["arguments"], (Json{{"a", 1}}));
  EXPECT_NE(calls[0]["id"], calls[1]["id"]);
  EXPECT_EQ(messages[2]["tool_call_id"], calls[1]["id"]);
  EXPECT_EQ(messages[2]["name"], "g");
  EXPECT_FALSE(messages[2].contains("tool_name"));
  EXPECT_EQ(messages[3]["tool_call_id"], calls[0]["id"]);
  EXPECT_EQ(messages[3]["name"], "f");
  EXPECT_EQ(messages[4]["tool_call_id"], "other");
}

TEST(OllamaMessages, MakePartsOfImages) {
  const Json messages = openai_messages({{{"role", "user"},
                                          {"content", "what?"},
                                          {"images", {"aGk=", "data:image/png;base64,aGk="}}}});
  const Json parts = messages[0]["content"];
  ASSERT_EQ(parts.size(), 3u);
  EXPECT_EQ(parts[0]["image_url"]["url"], "data:image/png;base64,aGk=");
  EXPECT_EQ(parts[0], parts[1]);
  EXPECT_EQ(parts[2]["text"], "what?");
  EXPECT_FALSE(messages[0].contains("images"));
}

TEST_F(OllamaTest, ReturnsCallsWithObjects) {
  pieces_ = {"<tool_call>{\"name\": \"look\", \"arguments\": {\"at\"", ": \"it\"}}</tool_call>",
             "<tool_call>{\"name\": \"look\", \"arguments\": {}}</tool_call>"};
  const Json json = whole(kChat, chat({{"tools", tools_}}));
  const Json calls = json["message"]["tool_calls"];
  ASSERT_EQ(calls.size(), 2u) << json;
  EXPECT_EQ(calls[0]["function"]["name"], "look");
  EXPECT_EQ(calls[0]["function"]["arguments"], (Json{{"at", "it"}}));
  EXPECT_EQ(calls[1]["function"]["arguments"], Json::object());
  EXPECT_EQ(calls[1]["function"]["index"], 1);
  EXPECT_EQ(json["done_reason"], "stop");
  EXPECT_EQ(json["message"]["content"], "");
  EXPECT_EQ(Json::parse(conversation_.tools.json()), tools_);

  Json streamed = Json::array();
  const auto all = lines(post(kChat, chat({{"tools", tools_}})));
  for (const Json& line : all) {
    EXPECT_EQ(line["message"]["content"], "");
    for (Json call : line["message"].value("tool_calls", Json::array())) {
      EXPECT_TRUE(call["id"].is_string());
      call.erase("id");
      streamed.push_back(call);
    }
  }
  ASSERT_EQ(streamed.size(), 2u) << "each call is sent once, in one line";
  EXPECT_EQ(streamed[0]["function"]["arguments"], (Json{{"at", "it"}}));
  EXPECT_EQ(streamed[1]["function"]["index"], 1);
  EXPECT_TRUE(all.back()["done"]);
  EXPECT_FALSE(all.back()["message"].contains("tool_calls"));
}

TEST_F(OllamaTest, SplitsThinkingFromTheAnswer) {
  reason();
  generator().chat->source = "{{ reasoning_effort }}{{ enable_thinking }}";
  pieces_ = {"<think>", "hm", "</think>", "Yes"};
  Json json = whole(kChat, chat({{"think", "high"}}));
  EXPECT_EQ(json["message"]["thinking"], "hm");
  EXPECT_EQ(json["message"]["content"], "Yes");
  const Json variables = Json::parse(conversation_.variables.json());
  EXPECT_EQ(variables["enable_thinking"], true);
  EXPECT_EQ(variables["reasoning_effort"], "high");
  whole(kChat, chat({{"think", false}}));
  EXPECT_EQ(Json::parse(conversation_.variables.json())["enable_thinking"], false);
  EXPECT_FALSE(warned("switched"));
  generator().chat->source.clear();
  whole(kChat, chat({{"think", false}}));
  EXPECT_TRUE(warned("reasoning cannot be switched"));
  std::string thinking, content;
  for (const Json& line : lines(post(kChat, chat({{"think", true}})))) {
    thinking += line["message"].value("thinking", "");
    content += line["message"]["content"].get<std::string>();
  }
  EXPECT_EQ(thinking, "hm");
  EXPECT_EQ(content, "Yes");
  json = whole(kGenerate, {{"prompt", "hi"}});
  EXPECT_EQ(json["thinking"], "hm");
  EXPECT_EQ(json["response"], "Yes");
}

TEST_F(OllamaTest, ConstrainsTheFormat) {
  for (const Json& format : {Json("json"), Json{{"type", "object"}}}) {
    whole(kChat, chat({{"format", format}}));
    EXPECT_TRUE(options_.constrain) << format;
    whole(kGenerate, {{"prompt", "a"}, {"format", format}});
    EXPECT_TRUE(options_.constrain) << format;
  }
  whole(kChat, chat({{"format", ""}}));
  EXPECT_FALSE(options_.constrain);
  refused_plainly(post(kChat, chat({{"format", {{"type", "nothing"}}}})), 400, "format");
}

TEST_F(OllamaTest, ReturnsLogprobs) {
  const Json json = whole(kChat, chat({{"logprobs", true}, {"top_logprobs", 2}}));
  ASSERT_EQ(json["logprobs"].size(), 3u);
  EXPECT_EQ(json["logprobs"][0]["logprob"], -0.5);
  EXPECT_EQ(json["logprobs"][0]["top_logprobs"].size(), 2u);
  size_t tokens = 0;
  for (const Json& line : lines(post(kGenerate, {{"prompt", "a"}, {"logprobs", true}})))
    tokens += line.value("logprobs", Json::array()).size();
  EXPECT_EQ(tokens, 3u);
  refused_plainly(post(kChat, chat({{"top_logprobs", 2}})), 400, "logprobs");
  EXPECT_EQ(
      whole(kGenerate, {{"prompt", "a"}, {"raw", true}, {"logprobs", true}})["logprobs"].size(),
      3u);
}

TEST_F(OllamaTest, EndsAStreamWithAnError) {
  error_ = "broken";
  const auto all = lines(post(kChat, chat()));
  EXPECT_EQ(all.back(), (Json{{"error", "broken"}}));
}

TEST_F(OllamaTest, ComputesVectors) {
  const Json json =
      parsed(post("/api/embed", {{"model", "second/model:latest"}, {"input", {"a", "b"}}}));
  EXPECT_EQ(json["model"], "second/model:latest");
  ASSERT_EQ(json["embeddings"].size(), 2u);
  EXPECT_GT(json["prompt_eval_count"], 2);
  EXPECT_TRUE(json["total_duration"].is_number_integer());
  double squares = 0;
  for (const double value : json["embeddings"][0]) squares += value * value;
  EXPECT_NEAR(squares, 1, 1e-5);
  EXPECT_EQ(parsed(post("/api/embed", {{"input", "a"}, {"dimensions", 2}}))["embeddings"][0].size(),
            2u);
  EXPECT_EQ(parsed(post("/api/embeddings", {{"prompt", "a"}}))["embedding"].size(),
            json["embeddings"][0].size());
  refused_plainly(post("/api/embed", {{"model", "first"}, {"input", "a"}}), 400, "embeddings");
  refused_plainly(post("/api/embed", Json::object()), 400, "input");
  refused_plainly(post("/api/embed", {{"input", {1}}}), 400, "input");
}

TEST_F(OllamaTest, ListsAndShowsModels) {
  const Json models = parsed(ask("GET", "/api/tags"))["models"];
  ASSERT_EQ(models.size(), 6u);
  EXPECT_EQ(models[0]["name"], "first:latest");
  EXPECT_EQ(models[1]["model"], "second/model:latest");
  EXPECT_EQ(models[0]["digest"].get<std::string>().size(), 64u);
  EXPECT_EQ(models[0]["details"]["parameter_size"], "1.0K");
  const Json running = parsed(ask("GET", "/api/ps"))["models"];
  EXPECT_EQ(running[0]["context_length"], 512);
  EXPECT_TRUE(running[0].contains("expires_at"));
  generator().chat->source = "{{ messages }}";
  reason();
  const Json shown = parsed(post("/api/show", {{"model", "first:latest"}}));
  EXPECT_EQ(shown["template"], "{{ messages }}");
  EXPECT_EQ(shown["capabilities"], (Json{"completion", "tools", "thinking"}));
  const std::string architecture = shown["model_info"]["general.architecture"];
  EXPECT_EQ(shown["model_info"][architecture + ".context_length"], 512);
  EXPECT_EQ(parsed(post("/api/show", {{"name", "second/model"}}))["capabilities"],
            Json::array({"embedding"}));
  refused_plainly(post("/api/show", {{"model", "none"}}), 404, "none");
  refused_plainly(post("/api/show", {{"model", 1}}), 400, "model");
  EXPECT_TRUE(parsed(ask("GET", "/api/version"))["version"].is_string());
}

TEST_F(OllamaTest, ChangesNoModels) {
  refused_plainly(post("/api/pull", {{"model", "hf.co/user/other"}}), 403, "--allow-pull");
  // Nothing is fetched for a model that is served.
  EXPECT_EQ(post("/api/pull", {{"model", "first"}})->response.status, 200);
  for (const char* path : {"/api/create", "/api/copy", "/api/push", "/api/blobs/sha256:00"})
    refused_plainly(post(path, Json::object()), 501, "/api/");
  refused_plainly(ask("DELETE", "/api/delete", "{}"), 501, "delete");
  EXPECT_EQ(ask("HEAD", "/api/blobs/sha256:00")->response.status, 501);
}

TEST_F(OllamaTest, PullsOnlyNamesOfTheHub) {
  api_.options().allow_pull = true;
  router_ = all_routes(api_);
  EXPECT_EQ(lines(post("/api/pull", {{"model", "first:latest"}})),
            (std::vector<Json>{{{"status", "success"}}}));
  EXPECT_EQ(parsed(post("/api/pull", {{"name", "first"}, {"stream", false}})),
            (Json{{"status", "success"}}));
  refused_plainly(post("/api/pull", {{"model", "a/b"}}), 501, "pull");
  ModelLoader loader(api_.list(), {});
  api_.options().loader = &loader;
  for (const char* name : {"llama3.2", "/etc/passwd", "../x", ".", "hf.co/"})
    refused_plainly(post("/api/pull", {{"model", name}}), 400, "");
  refused_plainly(post("/api/pull", Json::object()), 400, "model");
  refused_plainly(post("/api/pull", {{"model", "first"}, {"stream", 1}}), 400, "stream");
  api_.options().loader = nullptr;
}

TEST_F(OllamaTest, AcceptsAnyNameOfTheOnlyModel) {
  Api alone({model_});
  alone.options().any_model = true;
  EXPECT_EQ(alone.model({{"model", "gpt-4"}}, [](const auto&) { return true; }), model_);
  EXPECT_THROW(api_.model({{"model", "gpt-4"}}, [](const auto&) { return true; }), ApiError);
  api_.options().any_model = true;
  EXPECT_THROW(api_.model({{"model", "gpt-4"}}, [](const auto&) { return true; }), ApiError)
      << "several models";
}

TEST_F(OllamaTest, SaysThatItRunsToClientsThatReadNoPage) {
  const auto page = [&](const std::string& accept) {
    http::Request request;
    request.method = "GET";
    request.path = "/";
    if (!accept.empty()) request.headers = {{"accept", accept}};
    auto exchange = std::make_shared<http::FakeExchange>();
    std::get<const http::Route*>(router_.find(request))->handler(request, exchange);
    return exchange->response.body;
  };
  EXPECT_EQ(page("application/json"), "Ollama is running");
  for (const char* accept : {"", "*/*", "text/html,application/xml;q=0.9"})
    EXPECT_TRUE(page(accept).starts_with("<!")) << accept;
}

}  // namespace
}  // namespace fovea::serve
