// The routes /v1/embeddings, /embed and /rerank.

#include "serve/protocols/vectors.h"

#include <future>

#include "api_fixture.h"
#include "support/no_memory.h"

namespace fovea::serve {
namespace {

class VectorsTest : public ApiTest {
 protected:
  std::vector<float> alone(const std::string& text, const infer::EmbedOptions& options = {}) const {
    return embedder_->embed({text}, options).values;
  }
  const std::string kText = "the eye sees a fox";
};

TEST(Embeddings, AreEncodedInBase64) {
  EXPECT_EQ(base64(""), "");
  EXPECT_EQ(base64("f"), "Zg==");
  EXPECT_EQ(base64("fo"), "Zm8=");
  EXPECT_EQ(base64("foobar"), "Zm9vYmFy");
  EXPECT_EQ(base64("\xff\xfe\xfd"), "//79");
}

TEST_F(VectorsTest, EmbedsLikeTextEmbeddingsInference) {
  const Json json = parsed(post("/embed", {{"inputs", {kText, "a"}}}));
  EXPECT_EQ(json[0].get<std::vector<float>>(), alone(kText)) << "every bit";
  EXPECT_EQ(json[1].get<std::vector<float>>(), alone("a"));
  EXPECT_EQ(parsed(post("/embed", {{"inputs", "a"}})), Json::array({json[1]}));
  infer::EmbedOptions options;
  options.dimensions = 4;
  options.normalise = false;
  options.prompt_name = "query";
  const Json other = parsed(
      post("/embed",
           {{"inputs", kText}, {"dimensions", 4}, {"normalize", false}, {"prompt_name", "query"}}));
  EXPECT_EQ(other[0].get<std::vector<float>>(), alone(kText, options));
}

TEST_F(VectorsTest, EmbedsTokenIds) {
  const std::vector<int32_t> ids = embedder_->tokenizer().encode(kText);
  const std::string text = embedder_->tokenizer().decode(ids, true);
  const Json json = parsed(post("/embed", {{"inputs", ids}}));
  EXPECT_EQ(json[0].get<std::vector<float>>(), alone(text));
}

TEST_F(VectorsTest, RefusesLikeTextEmbeddingsInference) {
  refused_plainly(post("/embed", {{"inputs", Json::array()}}), 400, "inputs", "Empty");
  refused_plainly(post("/embed", {{"inputs", ""}}), 400, "inputs", "Empty");
  refused_plainly(post("/embed", {{"inputs", 1}}), 422, "inputs", "Validation");
  refused_plainly(post("/embed", Json::object()), 422, "inputs", "Validation");
  refused_plainly(post("/embed", {{"inputs", "a"}, {"dimensions", 11}}), 422, "at most 10",
                  "Validation");
  refused_plainly(post("/embed", {{"inputs", "a"}, {"prompt_name", "none"}}), 422, "prompt_name",
                  "Validation");
  refused_plainly(post("/embed", {{"inputs", "a"}, {"truncation_direction", "left"}}), 422,
                  "truncation_direction", "Validation");
  std::string long_text;
  for (int i = 0; i < 40; ++i) long_text += "fox ";
  EXPECT_EQ(post("/embed", {{"inputs", long_text}})->response.status, 200);
  refused_plainly(post("/embed", {{"inputs", long_text}, {"truncate", false}}), 422, "tokens",
                  "Validation");
  refused_plainly(post("/embed", {{"model", "first"}, {"inputs", "a"}}), 424, "embeddings",
                  "Backend");
  refused_plainly(post("/embed", {{"model", "none"}, {"inputs", "a"}}), 404, "model", "Validation");
  refused_plainly(ask("POST", "/embed", "{"), 422, "JSON", "Validation");
}

TEST_F(VectorsTest, RanksTextsByTheirScore) {
  const std::vector<std::string> texts = {"a fox sleeps", "the eye sees", "nothing"};
  const std::vector<float> scores = reranker_->score(kText, texts);
  const Json json =
      parsed(post("/rerank", {{"query", kText}, {"texts", texts}, {"return_text", true}}));
  ASSERT_EQ(json.size(), 3u);
  for (size_t i = 0; i < 3; ++i) {
    const size_t index = json[i]["index"];
    EXPECT_EQ(json[i]["score"].get<float>(), scores[index]) << "every bit";
    EXPECT_EQ(json[i]["text"], texts[index]);
    EXPECT_TRUE(i == 0 || json[i]["score"] <= json[i - 1]["score"]);
  }
  infer::RerankOptions raw;
  raw.raw = true;
  const Json as_it_is =
      parsed(post("/rerank", {{"query", kText}, {"texts", {texts[0]}}, {"raw_scores", true}}));
  EXPECT_EQ(as_it_is[0]["score"].get<float>(), reranker_->score(kText, {texts[0]}, raw)[0]);
  EXPECT_FALSE(as_it_is[0].contains("text"));
}

TEST_F(VectorsTest, RefusesToRankNoTexts) {
  refused_plainly(post("/rerank", {{"query", "a"}, {"texts", Json::array()}}), 400, "texts",
                  "Empty");
  refused_plainly(post("/rerank", {{"query", "a"}}), 422, "texts", "Validation");
  refused_plainly(post("/rerank", {{"model", "first"}, {"query", "a"}, {"texts", {"b"}}}), 424,
                  "re-ranker", "Backend");
}

TEST_F(VectorsTest, ReturnsStatus429IfTheQueueIsFull) {
  other_->needs<ServedEmbedder>().queue =
      std::make_shared<infer::EmbedQueue>(*embedder_, infer::QueueOptions{.most_waiting = 0});
  const auto plain = post("/embed", {{"inputs", "a"}});
  refused_plainly(plain, 429, "too many", "Overloaded");
  EXPECT_EQ(plain->response.headers[0].first, "Retry-After");
  const auto openai = post("/v1/embeddings", {{"input", "a"}});
  refused(openai, 429, nullptr, "too many");
  EXPECT_EQ(openai->response.headers[0].first, "Retry-After");
}

TEST_F(VectorsTest, ReturnsStatus503IfMemoryRunsOut) {
  const test::NoMemory broken;
  refused(post("/v1/embeddings", {{"input", "a"}}), 503, nullptr, "no memory");
  refused_plainly(post("/embed", {{"inputs", "a"}}), 503, "no memory", "Unhealthy");
  refused_plainly(post("/rerank", {{"query", "a"}, {"texts", {"b"}}}), 503, "no memory",
                  "Unhealthy");
}

TEST_F(VectorsTest, GivesTheSameBitsInAnyBatch) {
  std::vector<std::string> texts;
  std::vector<std::vector<float>> expected;
  for (int i = 0; i < 60; ++i) {
    std::string text = "the";
    for (int word = 0; word < i % 9; ++word) text += word % 2 == 0 ? " fox" : " eye sees";
    texts.push_back(text);
    expected.push_back(alone(text));
  }
  infer::EmbedQueue queue(*embedder_);
  std::vector<std::promise<std::vector<float>>> promises(texts.size());
  for (size_t i = 0; i < texts.size(); ++i) {
    queue.submit({texts[i]}, {}, [&promises, i](const infer::Embeddings* embeddings, const Error*) {
      promises[i].set_value(embeddings->values);
    });
  }
  for (size_t i = 0; i < texts.size(); ++i) EXPECT_EQ(promises[i].get_future().get(), expected[i]);
  EXPECT_LT(queue.status().batches, 60);
}

}  // namespace
}  // namespace fovea::serve
