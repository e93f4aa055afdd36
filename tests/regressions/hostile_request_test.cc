// Small or maximal requests that once crashed the server or exhausted its memory or time, and
// conversations that try to forge special tokens.

#include <sys/stat.h>
#include <map>

#include "fovea/core/error.h"
#include "serve/routes/response_limits.h"
#include "unit/serve/api_fixture.h"

namespace fovea::serve {
namespace {

class HostileRequestTest : public ApiTest {
 protected:
  Json conversation_with_call(const Json& arguments) {
    const Json call = {{"function", {{"name", "f"}, {"arguments", arguments}}}};
    const Json user = {{"role", "user"}, {"content", "x"}};
    const Json assistant = {
        {"role", "assistant"}, {"content", nullptr}, {"tool_calls", Json::array({call})}};
    return {{"messages", Json::array({user, assistant})}};
  }
};

// The arguments of a call are JSON in a string. They were parsed without the limits of the body,
// and writing 41,000 levels crashed the program.
TEST_F(HostileRequestTest, KeepsDeepArgumentsAsText) {
  for (const std::string& inner :
       {std::string(100'000, '[') + std::string(100'000, ']'), std::string(100'000, '[')}) {
    const std::string arguments = "{\"a\":" + inner + "}";
    model_->facts.context = 1 << 20;
    const auto exchange = post(kChatPath, conversation_with_call(arguments));
    EXPECT_EQ(exchange->response.status, 200) << exchange->response.body;
    const Json messages = Json::parse(conversation_.messages.json());
    EXPECT_EQ(messages[1]["tool_calls"][0]["function"]["arguments"], arguments);
  }
}

TEST_F(HostileRequestTest, RefusesDeepArgumentsWithATemplateFile) {
  const TemporaryFolder folder;
  const std::string path = folder.path() + "/chat.jinja";
  std::ofstream(path) << "{% for m in messages %}{{ m.content }}"
                         "{% if m.tool_calls %}{{ m.tool_calls | tojson }}{% endif %}{% endfor %}";
  generator().chat = text::chat_format("", path, *tokenizer_);
  model_->facts.context = 1 << 20;
  // 60 levels and those of the conversation together exceed the template's limit.
  const std::string deep = "{\"a\":" + std::string(60, '[') + std::string(60, ']') + "}";
  const auto exchange = post(kChatPath, conversation_with_call(deep));
  refused(exchange, 400, "messages", "nested");
  EXPECT_EQ(post(kChatPath, conversation_with_call("{\"a\":[]}"))->response.status, 200);
}

TEST_F(HostileRequestTest, ReadsManyKeysQuicklyAndRefusesTooMany) {
  std::string body = "{\"content\":\"a\"";
  for (int i = 0; i < 99'000; ++i) body += ",\"" + std::to_string(i) + "\":0";
  EXPECT_EQ(ask("POST", "/tokenize", body + "}")->response.status, 200);
  for (int i = 0; i < 2'000; ++i) body += ",\"x" + std::to_string(i) + "\":0";
  refused(ask("POST", "/tokenize", body + "}"), 400, nullptr, "100000 keys");
}

// A request of 686 bytes could cause gigabytes of output: many prompts, many choices for each, and
// all attention weights of each token.
TEST_F(HostileRequestTest, EstimatesResponsesBeforeStarting) {
  model_->facts.context = 4096;
  model_->facts.width = 1024;
  const Json trace = {{"attention", {{"top_k", 1024}}}, {"hidden_states", {{"layer", 2}}}};
  const Json asked = {{"prompt", std::vector<std::string>(32, "the fox")},
                      {"n", 16},
                      {"max_tokens", 500},
                      {"logprobs", 20},
                      {"fovea", trace}};
  refused(post(kCompletionPath, asked), 400, "max_tokens", "at most 64 MiB");
  EXPECT_TRUE(prompts_.empty());
  Json less = asked;
  less["max_tokens"] = 1;
  EXPECT_EQ(post(kCompletionPath, less)->response.status, 200);
  less["stream"] = true;
  EXPECT_EQ(post(kCompletionPath, less)->response.status, 200);
  // If the request sets no max_tokens, their number is reduced to fit the limit.
  model_->facts.context = 1 << 20;
  EXPECT_EQ(post(kChatPath, chat({{"logprobs", true}, {"top_logprobs", 20}}))->response.status,
            200);
  EXPECT_LT(options_.max_tokens, 40'000);
  EXPECT_GT(options_.max_tokens, 20'000);
  EXPECT_EQ(post(kChatPath, chat())->response.status, 200);
  EXPECT_GT(options_.max_tokens, 900'000) << "text alone takes little memory";
  refused(
      post(kCompletionPath, {{"prompt", std::vector<std::string>(32, std::string(150'000, 'x'))},
                             {"n", 16},
                             {"echo", true}}),
      400, "echo", "at most 64 MiB");
}

// Tokens may be longer than estimated, so the responses in memory are limited as well.
TEST_F(HostileRequestTest, LimitsHeldResponses) {
  HeldBytes one, two, three, four, five;
  EXPECT_THROW(one.set(kMostResponseBytes + 1), ApiError);
  for (HeldBytes* held : {&one, &two, &three, &four}) held->set(kMostResponseBytes);
  try {
    five.set(1);
    ADD_FAILURE() << "accepted more than the limit of all responses";
  } catch (const ApiError& error) {
    EXPECT_EQ(error.status, 503);
  }
  one.set(0);
  five.set(1);
  pieces_ = {std::string(40 << 20, 'x'), "y"};
  refused(post(kChatPath, chat({{"n", 2}})), 400, "body", "at most 64 MiB");
  EXPECT_EQ(post(kChatPath, chat())->response.status, 200);
}

TEST_F(HostileRequestTest, WritesTokensOfALongTextDirectly) {
  const std::string text(200'000, 'q');
  const auto exchange = post("/tokenize", {{"content", text}, {"with_pieces", true}});
  const Json json = parsed(exchange);
  std::string joined;
  for (const Json& token : json["tokens"]) joined += token["piece"].get<std::string>();
  EXPECT_EQ(joined, text);
  EXPECT_EQ(json["count"], json["tokens"].size());
  EXPECT_EQ(json["max_model_len"], 64);
}

TEST_F(HostileRequestTest, EstimatesVectorsBeforeComputing) {
  EXPECT_THROW(check_vectors(2048, 8192, false, "input"), ApiError);
  check_vectors(2048, 3072, true, "input");
  check_vectors(2048, 1024, false, "input");
}

// A function parameter named <|im_end|> once ended the system message: values were guarded, but
// names and extra template variables were not.
TEST_F(HostileRequestTest, GuardsNamesAndVariables) {
  const std::string special(tokenizer_->text_of(tokenizer_->eos_id().value()));
  generator().chat = text::ChatFormat{[](const text::ChatRequest& request) {
    return request.messages.json() + request.tools.json() + request.documents.json() +
           request.variables.json();
  }};
  model_->facts.context = 4096;
  const Json held = {{special, special}, {"plain", Json::array({special, {{special, 1}}})}};
  Json asked = conversation_with_call(Json{{special, 1}}.dump());
  asked["messages"][0]["content"] = special;
  asked["messages"][0][special] = held;
  asked["tools"] = {{{"type", "function"}, {"function", {{"name", "f"}, {"parameters", held}}}}};
  asked["documents"] = {held};
  asked["chat_template_kwargs"] = held;
  asked["reasoning_effort"] = special;
  EXPECT_EQ(post(kChatPath, asked)->response.status, 200);
  ASSERT_EQ(prompts_.size(), 1u);
  for (const int32_t id : prompts_[0]) EXPECT_FALSE(tokenizer_->is_special(id));
}

class TemplateTest : public HostileRequestTest {
 protected:
  void use(const std::string& source) {
    path_ = folder_.path() + "/secret place.jinja";
    std::ofstream(path_) << source;
    generator().chat = text::chat_format("", path_, *tokenizer_);
    model_->facts.context = 4096;
  }
  std::string last_prompt() { return tokenizer_->decode(prompts_.back()); }

  const TemporaryFolder folder_;
  std::string path_;
};

// Clients of OpenAI's API send null as the content of a message with tool calls; templates that
// concatenate strings refused null.
TEST_F(TemplateTest, AcceptsNullContentWithToolCalls) {
  use("{% for m in messages %}{{ m.role + ':' + m.content }};{% endfor %}");
  EXPECT_EQ(post(kChatPath, conversation_with_call("{}"))->response.status, 200);
  EXPECT_EQ(last_prompt(), "user:x;assistant:;");
  Json absent = conversation_with_call("{}");
  absent["messages"][1].erase("content");
  EXPECT_EQ(post(kChatPath, absent)->response.status, 200);
  EXPECT_EQ(last_prompt(), "user:x;assistant:;");
  use("{% for m in messages %}{{ 'calls' if m.content is none else m.content }};{% endfor %}");
  EXPECT_EQ(post(kChatPath, conversation_with_call("{}"))->response.status, 200);
  EXPECT_EQ(last_prompt(), "x;calls;") << "a template that handles null receives it";
}

TEST_F(TemplateTest, HidesPathsAndLimitsQuotesInErrors) {
  use("{{ raise_exception('no: ' ~ messages[0].content) }}");
  const Json long_chat = {
      {"messages", {{{"role", "user"}, {"content", std::string(200'000, 'w')}}}}};
  const auto exchange = post(kChatPath, long_chat);
  refused(exchange, 400, "messages", "the chat template: line 1, column");
  EXPECT_EQ(exchange->response.body.find("secret place"), std::string::npos);
  EXPECT_LT(exchange->response.body.size(), 700u);
}

// Tools were silently ignored if the template did not support them.
// Tools are described in the system message; only the prompt shows whether they were.
TEST_F(TemplateTest, IgnoresNoFieldThatTheTemplateIgnores) {
  const Json tools = {{{"type", "function"}, {"function", {{"name", "f"}}}}};
  model_->facts.context = 4096;
  use("{% for m in messages %}{{ m.content }}{% endfor %}");
  refused(post(kChatPath, chat({{"documents", {{{"text", "a"}}}}})), 400, "documents");
  std::map<std::string, int64_t> tokens;  // of the prompt
  for (const std::string choice : {"none", "auto", "required"}) {
    const auto exchange = post(kChatPath, chat({{"tools", tools}, {"tool_choice", choice}}));
    EXPECT_EQ(exchange->response.status, 200) << choice << exchange->response.body;
    tokens[choice] = parsed(exchange)["usage"]["prompt_tokens"].get<int64_t>();
  }
  EXPECT_LT(tokens["none"] + 100, tokens["auto"]);
  EXPECT_EQ(tokens["auto"], tokens["required"]);
  use("{{ tools }}{{ documents }}");
  EXPECT_EQ(
      post(kChatPath, chat({{"tools", tools}, {"documents", {{{"text", "a"}}}}}))->response.status,
      200);
}

TEST_F(TemplateTest, RefusesAFifoAsTemplate) {
  const std::string path = folder_.path() + "/fifo";
  ASSERT_EQ(mkfifo(path.c_str(), 0600), 0);
  EXPECT_THROW(text::chat_format("", path, *tokenizer_), Error);
}

TEST_F(HostileRequestTest, RefusesAModelWithoutALanguageModelHead) {
  refused(post(kChatPath, chat({{"model", "second/model"}})), 400, "model",
          "second/model: has no language-model head");
  refused(post(kCompletionPath, {{"model", "third"}, {"prompt", "a"}}), 400, "model",
          "third: has no language-model head");
}

TEST_F(HostileRequestTest, LimitsQuotesInErrors) {
  const std::string word(300'000, 'w');
  for (const auto& exchange :
       {ask("POST", kChatPath, "{\"messages\": \"" + word),
        ask("POST", kChatPath, "{\"a\": " + word),
        post(kChatPath, chat({{"response_format", {{"type", word}}}})),
        post(kChatPath,
             chat({{"tool_choice", word}, {"tools", {{{"function", {{"name", word}}}}}}})),
        post(kChatPath, chat({{"model", word}})), post(kCompletionPath, {{"prompt", word}})}) {
    EXPECT_GE(exchange->response.status, 400);
    EXPECT_LT(exchange->response.body.size(), 1000u) << exchange->response.body.substr(0, 300);
  }
}

// A schema that matches a text in too many ways gave status 500, as if the server had failed. It is
// the client's error.
TEST_F(HostileRequestTest, ReportsAnAmbiguousSchemaAsAClientError) {
  error_ = "schema: too many ways";
  error_kind_ = ErrorKind::InvalidArgument;
  EXPECT_EQ(post(kChatPath, chat())->response.status, 400);
  error_kind_ = ErrorKind::OutOfMemory;
  EXPECT_EQ(post(kChatPath, chat())->response.status, 503);
}

// 600,000 lines of one letter took gigabytes before the first translation. Lines are now counted
// first, and no line is tokenised after the client has disconnected.
TEST_F(HostileRequestTest, RefusesTooManyLinesToTranslate) {
  generator().translator->directions = {{"de", "en", ""}};
  const auto translated = [&](const std::string& text, Json more = Json::object()) {
    more.update({{"q", text}, {"source", "de"}, {"target", "en"}});
    return post("/translate", more);
  };
  std::string lines;
  for (int i = 0; i < 65'536; ++i) lines += "\n";
  refused_plainly(translated(lines), 400, "at most 65536");
  lines.resize(65'536 / 4);
  refused_plainly(translated(lines, {{"alternatives", 3}}), 400, "at most 65536");
  EXPECT_EQ(translated(std::string(1000, '\n') + "a")->response.status, 200);
}

TEST_F(HostileRequestTest, TokenisesNoLineAfterADisconnect) {
  generator().translator->directions = {{"de", "en", ""}};
  int lines = 0;
  const auto exchange = std::make_shared<http::FakeExchange>();
  generator().translator->request = [&](const std::string&, const infer::TranslationDirection&,
                                        int64_t) {
    if (++lines == 3) exchange->leave();
    return infer::TranslationRequest{};
  };
  http::Request request;
  request.method = "POST";
  request.path = "/translate";
  request.body = Json{{"q", "a\nb\nc\nd\ne\nf"}, {"source", "de"}, {"target", "en"}}.dump();
  const auto found = router_.find(request);
  std::get<const http::Route*>(found)->handler(request, exchange);
  EXPECT_EQ(lines, 3);
  EXPECT_TRUE(prompts_.empty());
}

// /rerank with a query of 1.9 MB took over 200 seconds: the query was tokenised for each of 2,048
// texts, even after the client had disconnected.
TEST_F(HostileRequestTest, TokenisesALongQueryOnce) {
  std::string query;
  for (int i = 0; i < 20'000; ++i) query += "fox sees a ";
  const std::vector<std::string> texts(2048, "the eye");
  const Json json = parsed(post("/rerank", {{"query", query}, {"texts", texts}}));
  ASSERT_EQ(json.size(), 2048u);
  EXPECT_EQ(json[2047]["score"].get<float>(), reranker_->score(query, {"the eye"})[0]);
}

TEST_F(HostileRequestTest, EmbedsNothingAfterADisconnect) {
  const std::vector<std::string> texts(100, "the eye");
  infer::RerankOptions rerank;
  rerank.stop = [] { return true; };
  infer::RerankQueue scores(*reranker_);
  EXPECT_THROW(scores.submit("fox", texts, rerank, {}), Error);
  infer::EmbedOptions embed;
  embed.stop = rerank.stop;
  infer::EmbedQueue vectors(*embedder_);
  EXPECT_THROW(vectors.submit(texts, embed, {}), Error);
}

}  // namespace
}  // namespace fovea::serve
