#include <gtest/gtest.h>

#include "serve/jobs/batch_run.h"
#include "serve/jobs/direct_request.h"
#include "unit/serve/api_fixture.h"

namespace fovea::serve {
namespace {

BatchLine read(const std::string& text, bool bare = true) {
  return read_batch_line(text, "f.jsonl: line 7", 7, bare);
}

TEST(BatchLine, IsARequestOfARoute) {
  const BatchLine line = read(R"({"custom_id": "a", "method": "POST", "url": "/v1/responses",)"
                              R"( "body": {"input": "x", "seed": 3}, "more": 1})");
  EXPECT_EQ(line.error, "");
  EXPECT_EQ(line.custom_id, "a");
  EXPECT_EQ(line.path, "/v1/responses");
  EXPECT_EQ(line.body, R"({"input":"x","seed":3})");
}

TEST(BatchLine, MayBeABodyAlone) {
  const BatchLine chat = read(R"({"messages": [], "custom_id": "b"})");
  EXPECT_EQ(chat.error + chat.path + chat.custom_id, "/v1/chat/completionsb");
  EXPECT_EQ(chat.body, R"({"messages":[]})");
  const BatchLine text = read(R"({"prompt": "a"})");
  EXPECT_EQ(text.error + text.path + text.custom_id, "/v1/completions7");
  EXPECT_EQ(read(R"({"prompt": "a"})", false).error,
            "f.jsonl: line 7: expected custom_id, method, url and body");
}

TEST(BatchLine, NamesWhatIsWrong) {
  const auto error = [](const std::string& text) { return read(text, false).error; };
  EXPECT_EQ(error("[]"), "f.jsonl: line 7: expected a JSON object");
  EXPECT_EQ(error(R"({"url": "/v1/responses", "method": "POST", "body": {}})"),
            "f.jsonl: line 7: custom_id: expected a text");
  EXPECT_EQ(error(R"({"custom_id": "a", "url": "/v1/responses", "body": {}})"),
            "f.jsonl: line 7: method: expected POST");
  EXPECT_EQ(error(R"({"custom_id": "a", "method": "POST", "url": "/x", "body": {}})"),
            "f.jsonl: line 7: url: expected /v1/chat/completions, /v1/completions, /v1/responses, "
            "/v1/messages, /v1/embeddings");
  EXPECT_EQ(error(R"({"custom_id": "a", "method": "POST", "url": "/v1/responses", "body": 1})"),
            "f.jsonl: line 7: body: expected an object");
  EXPECT_EQ(error(R"({"custom_id": ""})"),
            "f.jsonl: line 7: custom_id: expected a text of 1 to 512 bytes");
  for (const char* text : {"", "{", R"({"a": 1, "a": 2})", "{} {}"})
    EXPECT_EQ(error(text).substr(0, 17), "f.jsonl: line 7: ") << text;
}

TEST(BatchAnswer, HasTheFormOfOpenAI) {
  const BatchLine line = read(R"({"prompt": "a"})");
  const BatchAnswer good = batch_answer(line, "id",
                                        {200,
                                         "",
                                         {},
                                         R"({"usage":{"completion_tokens":5},"x":0.10})"
                                         "\n"});
  EXPECT_EQ(good.json, R"({"id":"id","custom_id":"7","response":{"status_code":200,)"
                       R"("request_id":"id","body":{"usage":{"completion_tokens":5},"x":0.10}},)"
                       R"("error":null})");
  EXPECT_EQ(good.tokens, 5);
  EXPECT_EQ(good.error, "");
  const BatchAnswer bad = batch_answer(line, "id", {400, "", {}, R"({"error":{"message":"no"}})"});
  EXPECT_EQ(bad.error, "no");
  EXPECT_EQ(batch_error(read("[]"), "id").json,
            R"({"id":"id","custom_id":"7","response":null,"error":{"code":"invalid_line",)"
            R"("message":"f.jsonl: line 7: expected a JSON object"}})");
}

// A router whose requests are kept, and answered later.
class Requests {
 public:
  Requests() {
    http::Route route = {"POST", "/v1/completions"};
    route.handler = [this](const http::Request& request, std::shared_ptr<http::Exchange> exchange) {
      seen.push_back(request);
      exchanges.push_back(exchange);
      if (respond) respond(*exchange);
    };
    router.add(route);
  }
  http::Router router;
  std::vector<http::Request> seen;
  std::vector<std::shared_ptr<http::Exchange>> exchanges;
  std::function<void(http::Exchange&)> respond;
};

http::Request request() {
  http::Request request;
  request.method = "POST";
  request.path = "/v1/completions";
  return request;
}

TEST(DirectRequest, WaitsForItsResponse) {
  Requests requests;
  const DirectRequest direct(requests.router, request());
  EXPECT_FALSE(direct.wait(std::chrono::milliseconds(1)));
  requests.exchanges[0]->send({201, "", {}, "a"});
  EXPECT_EQ(direct.wait(std::chrono::seconds(10))->status, 201);
}

TEST(DirectRequest, IsCancelledByItsEnd) {
  Requests requests;
  bool left = false;
  {
    const DirectRequest direct(requests.router, request());
    requests.exchanges[0]->on_gone([&] { left = true; });
    EXPECT_FALSE(requests.exchanges[0]->gone());
  }
  EXPECT_TRUE(left && requests.exchanges[0]->gone());
}

TEST(DirectRequest, EndsWithoutAResponse) {
  Requests requests;
  const DirectRequest direct(requests.router, request());
  requests.exchanges.clear();
  EXPECT_EQ(direct.wait(std::chrono::seconds(10))->status, 500);
  http::Request other = request();
  other.path = "/v1/none";
  EXPECT_EQ(DirectRequest(requests.router, other).wait(std::chrono::seconds(10))->status, 404);
}

TEST(BatchRun, AnswersLinesInOrderAndRepeatsThoseWithoutRoom) {
  Requests requests;
  int refused = 2;
  requests.respond = [&](http::Exchange& exchange) {
    exchange.send({refused-- > 0 ? 429 : 200, "", {}, R"({"usage":{"completion_tokens":2}})"});
  };
  const BatchRun run{requests.router, "seed 1", true, "", [] { return false; }};
  const jobs::LineBlock block{"f", 10, 3, {R"({"prompt": "a"})", "wrong", R"({"prompt": "b"})"}};
  const jobs::BlockResult result = run.answer(block);
  EXPECT_EQ(result.tokens, 4);
  EXPECT_EQ(result.errors, 1);
  EXPECT_EQ(result.first_error.substr(0, 11), "f: line 5: ");
  std::vector<Json> lines;
  for (size_t at = 0, end; at < result.bytes.size(); at = end + 1) {
    end = result.bytes.find('\n', at);
    lines.push_back(Json::parse(result.bytes.substr(at, end - at)));
  }
  ASSERT_EQ(lines.size(), 3u);
  EXPECT_EQ(lines[0]["custom_id"], "11");
  EXPECT_EQ(lines[0]["response"]["status_code"], 200);
  EXPECT_TRUE(lines[1]["response"].is_null());
  EXPECT_EQ(lines[2]["response"]["status_code"], 200);
  EXPECT_EQ(requests.seen.size(), 4u);
  EXPECT_EQ(requests.seen[0].id, lines[0]["id"].get<std::string>());
  EXPECT_EQ(run.answer(block).bytes, result.bytes);
  const BatchRun other{requests.router, "seed 2", true, "", [] { return false; }};
  EXPECT_NE(other.answer(block).bytes, result.bytes);
}

TEST(BatchRun, Stops) {
  Requests requests;
  const BatchRun run{requests.router, "", true, "", [] { return true; }};
  EXPECT_THROW(run.answer({"f", 0, 0, {R"({"prompt": "a"})"}}), Error);
  EXPECT_TRUE(requests.exchanges[0]->gone());
}

TEST_F(ApiTest, StableResponsesDependOnTheRequestAlone) {
  api_.options().stable = true;
  request_id_ = "one";
  for (const auto& [path, body] : {std::pair(kChatPath, chat()),
                                   {"/v1/completions", Json{{"prompt", "a"}}},
                                   {"/v1/responses", Json{{"input", "a"}}},
                                   {"/v1/messages", chat({{"max_tokens", 9}})}}) {
    const std::string first = post(path, body)->response.body;
    const uint64_t seed = options_.sampling.seed;
    EXPECT_EQ(post(path, body)->response.body, first);
    EXPECT_EQ(options_.sampling.seed, seed);
    request_id_ = "two";
    const Json other = parsed(post(path, body));
    EXPECT_NE(other["id"], Json::parse(first)["id"]);
    EXPECT_NE(options_.sampling.seed, seed);
    EXPECT_FALSE(other.contains("timings"));
    request_id_ = "one";
  }
  EXPECT_EQ(parsed(post(kChatPath, chat()))["created"], 0);
  post(kChatPath, chat({{"seed", 5}}));
  EXPECT_EQ(options_.sampling.seed, 5u);
}

}  // namespace
}  // namespace fovea::serve
