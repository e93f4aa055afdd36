// The routes /v1/classify, /predict, /v1/score, /v1/rerank, /similarity, /info, and `inputs` of
// /tokenize.

#include "api_fixture.h"

namespace fovea::serve {
namespace {

class ClassificationTest : public ApiTest {
 protected:
  infer::Classifications alone(const std::vector<infer::TextInput>& inputs,
                               bool raw = false) const {
    infer::ClassifyOptions options;
    options.raw = raw;
    return classifier_->classify(inputs, options);
  }
};

TEST_F(ClassificationTest, ClassifiesLikeVllm) {
  const infer::Classifications wanted = alone({{"the fox", {}}, {"night", {}}});
  for (const char* path : {"/classify", "/v1/classify"}) {
    const Json json = parsed(post(path, {{"input", {"the fox", "night"}}}));
    ASSERT_EQ(json["data"].size(), 2u);
    for (int64_t i = 0; i < 2; ++i) {
      const Json& one = json["data"][static_cast<size_t>(i)];
      EXPECT_EQ(one["index"], i);
      EXPECT_EQ(one["num_classes"], 3);
      EXPECT_EQ(one["label"], wanted.labels[wanted.order(i)[0]]);
      for (size_t label = 0; label < 3; ++label)
        EXPECT_EQ(one["probs"][label].get<float>(), wanted.row(i)[label]) << "every bit";
    }
    EXPECT_EQ(json["usage"]["prompt_tokens"], wanted.tokens[0] + wanted.tokens[1]);
  }
  const Json raw = parsed(post("/v1/classify", {{"input", "night"}, {"use_activation", false}}));
  EXPECT_EQ(raw["data"][0]["probs"][0].get<float>(), alone({{"night", {}}}, true).scores[0]);
}

TEST_F(ClassificationTest, PredictsLikeTextEmbeddingsInference) {
  const infer::Classifications wanted = alone({{"the fox", {}}, {"a", "night"}});
  const auto expect = [&](const Json& labels, int64_t text) {
    const auto order = wanted.order(text);
    ASSERT_EQ(labels.size(), 3u);
    for (size_t i = 0; i < 3; ++i) {
      EXPECT_EQ(labels[i]["label"], wanted.labels[order[i]]);
      EXPECT_EQ(labels[i]["score"].get<float>(), wanted.row(text)[order[i]]);
    }
  };
  expect(parsed(post("/predict", {{"inputs", "the fox"}})), 0);
  expect(parsed(post("/predict", {{"inputs", {"a", "night"}}})), 1);
  const Json many = parsed(
      post("/predict", {{"inputs", Json::array({Json::array({"the fox"}), {"a", "night"}})}}));
  expect(many[0], 0);
  expect(many[1], 1);
  const Json raw = parsed(post("/predict", {{"inputs", "night"}, {"raw_scores", true}}));
  const infer::Classifications logits = alone({{"night", {}}}, true);
  EXPECT_EQ(raw[0]["score"].get<float>(), logits.row(0)[logits.order(0)[0]]);
}

TEST_F(ClassificationTest, RefusesBodiesOfAnotherForm) {
  refused(post("/v1/classify", {{"inputs", "a"}}), 400, "input", "input");
  refused(post("/v1/classify", {{"input", 1}}), 400, "input", "a string or an array of strings");
  refused(post("/v1/classify", {{"input", {""}}}), 400, "input", "at least one character");
  refused(post("/v1/classify", {{"model", "first"}, {"input", "a"}}), 400, "model",
          "sequence classifier");
  for (const Json& inputs : {Json(1), Json({"a", "b", "c"}), Json({{"a", "b", "c"}}),
                             Json({{"a"}, "b"}), Json::array({Json::array({1})})})
    refused_plainly(post("/predict", {{"inputs", inputs}}), 422, "a pair of texts", "Validation");
  refused_plainly(post("/predict", {{"inputs", Json::array()}}), 400, "inputs", "Empty");
  std::string text;
  for (int i = 0; i < 40; ++i) text += "the ";
  refused_plainly(post("/predict", {{"inputs", text}, {"truncate", false}}), 422,
                  "expected at most 32", "Validation");
  EXPECT_EQ(post("/predict", {{"inputs", text}})->response.status, 200);
}

TEST_F(ClassificationTest, ScoresPairs) {
  const auto wanted = reranker_->score("the fox", {"night", "a bird"});
  const Json one = parsed(post(
      "/v1/score", {{"model", "third"}, {"text_1", "the fox"}, {"text_2", {"night", "a bird"}}}));
  for (size_t i = 0; i < 2; ++i) EXPECT_EQ(one["data"][i]["score"].get<float>(), wanted[i]);
  // [CLS] the fox [SEP] night [SEP], and the same with "a bird"
  EXPECT_EQ(one["usage"], (Json{{"prompt_tokens", 13}, {"total_tokens", 13}}));
  const Json two = parsed(
      post("/score",
           {{"model", "third"}, {"text_1", {"the fox", "eye"}}, {"text_2", {"night", "a bird"}}}));
  EXPECT_EQ(two["data"][0]["score"].get<float>(), wanted[0]);
  EXPECT_EQ(two["data"][1]["score"].get<float>(), reranker_->score("eye", {"a bird"})[0]);
  refused(post("/v1/score", {{"model", "third"}, {"text_1", {"a", "b"}}, {"text_2", "c"}}), 400,
          "text_1", "2 texts; expected 1 or 1");
  refused(post("/v1/score", {{"model", "first"}, {"text_1", "a"}, {"text_2", "c"}}), 400, "model",
          "re-ranker");
}

TEST_F(ClassificationTest, ComparesVectors) {
  const auto vectors = embedder_->embed({"the fox", "night", "a bird"});
  const ArrayView view = vectors.view();
  const Json body = {
      {"inputs", {{"source_sentence", "the fox"}, {"sentences", {"night", "a bird"}}}}};
  const Json similar = parsed(post("/similarity", body));
  const Json scores = parsed(
      post("/v1/score",
           {{"model", "second/model"}, {"text_1", "the fox"}, {"text_2", {"night", "a bird"}}}));
  const int64_t tokens = 2 * vectors.tokens[0] + vectors.tokens[1] + vectors.tokens[2];
  EXPECT_EQ(scores["usage"], (Json{{"prompt_tokens", tokens}, {"total_tokens", tokens}}));
  for (int64_t i = 0; i < 2; ++i) {
    const float wanted = embedder_->similarity(view.row<float>(0), view.row<float>(i + 1));
    EXPECT_EQ(similar[static_cast<size_t>(i)].get<float>(), wanted);
    EXPECT_EQ(scores["data"][static_cast<size_t>(i)]["score"].get<float>(), wanted);
  }
  refused_plainly(post("/similarity", {{"inputs", "a"}}), 422, "an object", "Validation");
}

TEST_F(ClassificationTest, RanksLikeCohere) {
  const std::vector<std::string> texts = {"a fox sleeps", "the eye sees", "nothing"};
  const std::vector<float> scores = reranker_->score("the fox", texts);
  for (const char* path : {"/rerank", "/v1/rerank", "/v2/rerank"}) {
    const Json json = parsed(post(path, {{"model", "third"},
                                         {"query", "the fox"},
                                         {"documents", {texts[0], {{"text", texts[1]}}, texts[2]}},
                                         {"top_n", 2},
                                         {"return_documents", true}}));
    ASSERT_EQ(json["results"].size(), 2u);
    for (const Json& result : json["results"]) {
      const size_t index = result["index"];
      EXPECT_EQ(result["relevance_score"].get<float>(), scores[index]);
      EXPECT_EQ(result["document"]["text"], texts[index]);
    }
    EXPECT_GE(json["results"][0]["relevance_score"], json["results"][1]["relevance_score"]);
  }
  refused(post("/v1/rerank", {{"model", "third"}, {"query", "a"}, {"documents", {1}}}), 400,
          "documents", "an array of texts");
  refused(post("/v1/rerank", {{"model", "third"}, {"query", "a"}, {"texts", {"b"}}}), 400,
          "documents", "documents");
}

TEST_F(ClassificationTest, DescribesItselfAndTokenizes) {
  other_->tokenizer = embedder_->tokenizer();
  const Json info = parsed(ask("GET", "/info"));
  EXPECT_EQ(info["model_id"], "first");
  EXPECT_EQ(info["max_input_length"], 64);
  const Json lists =
      parsed(post("/tokenize", {{"model", "second/model"}, {"inputs", {"the fox", "night"}}}));
  ASSERT_EQ(lists.size(), 2u);
  EXPECT_EQ(lists[0].size(), 4u);
  EXPECT_EQ(lists[0][0]["special"], true);
  EXPECT_EQ(lists[0][0]["start"], nullptr);
  EXPECT_EQ(lists[0][2]["text"], "fox");
  EXPECT_EQ(lists[0][2]["start"], 4);
  EXPECT_EQ(lists[0][2]["stop"], 7);
  const Json bare = parsed(
      post("/tokenize",
           {{"model", "second/model"}, {"inputs", "the fox"}, {"add_special_tokens", false}}));
  EXPECT_EQ(bare[0].size(), 2u);
}

}  // namespace
}  // namespace fovea::serve
