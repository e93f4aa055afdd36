// The routes of llama.cpp's server, those of text-embeddings-inference that it lacks, and the
// description of all routes.

#include <gtest/gtest.h>

#include <algorithm>

#include "api_fixture.h"
#include "serve/openapi.h"
#include "serve/protocols/vectors.h"
#include "serve/request/fields.h"

namespace fovea::serve {
namespace {

class LlamaTest : public ApiTest {
 protected:
  void SetUp() override {
    ApiTest::SetUp();
    model_->facts.context = 512;
    api_.set_warn([this](const std::string& line) { warnings_.push_back(line); });
  }
  bool warned(const std::string& text) const {
    return std::any_of(warnings_.begin(), warnings_.end(), [&](const std::string& line) {
      return line.find(text) != std::string::npos;
    });
  }
  // A tokenizer with tokens to fill in the middle of a text.
  static text::Tokenizer with_middle_tokens(const std::vector<std::string>& special) {
    const TemporaryFolder folder;
    const std::string path = folder.path() + "/text.txt";
    std::ofstream(path) << "Some words, so that there is something to count.\n";
    text::TokenizerTraining options;
    options.vocabulary = 270;
    options.special_tokens = special;
    return train::train_tokenizer({path}, options, {})->tokenizer;
  }

  std::vector<std::string> warnings_;
};

TEST_F(LlamaTest, CompletesAText) {
  const Json json = parsed(post("/completion", {{"prompt", "a"}, {"n_predict", 5}}));
  EXPECT_EQ(json["content"], "Hello");
  EXPECT_EQ(json["stop"], true);
  EXPECT_EQ(json["stop_type"], "eos");
  EXPECT_EQ(json["stopping_word"], "");
  EXPECT_EQ(json["tokens"], Json::array());
  EXPECT_EQ(json["tokens_predicted"], 3);
  EXPECT_EQ(json["tokens_evaluated"], prompts_[0].size());
  EXPECT_EQ(json["model"], "first");
  EXPECT_EQ(json["generation_settings"]["n_predict"], 5);
  EXPECT_EQ(json["generation_settings"]["n_ctx"], 512);
  EXPECT_EQ(json["timings"]["predicted_n"], 3);
  EXPECT_FALSE(json.contains("completion_probabilities"));
  post("/completion", {{"prompt", "a"}});
  EXPECT_EQ(options_.max_tokens, 512 - std::ssize(prompts_.back())) << "no limit by default";
  finish_ = infer::FinishReason::length;
  EXPECT_EQ(parsed(post("/completion", {{"prompt", "a"}}))["stop_type"], "limit");
  finish_ = infer::FinishReason::stop;
  EXPECT_EQ(parsed(post("/completion", {{"prompt", "a"}}))["stop_type"], "word");
}

TEST_F(LlamaTest, ShowsTheTokenizer) {
  generator().chat->source = "{{ messages }}";
  const Json known = parsed(ask("GET", "/tokenizer_info"));
  EXPECT_EQ(known["tokenizer_class"], "fovea");
  EXPECT_EQ(known["vocab_size"], tokenizer_->size());
  EXPECT_EQ(known["model_max_length"], 512);
  EXPECT_EQ(known["eos_token"], std::string(tokenizer_->text_of(*tokenizer_->eos_id())));
  EXPECT_EQ(known["pad_token"], nullptr);
  EXPECT_EQ(known["chat_template"], "{{ messages }}");
  model_->tokenizer_config = {{"tokenizer_class", "LlamaTokenizer"},
                              {"pad_token", {{"content", "<pad>"}}}};
  const Json configured = parsed(ask("GET", "/tokenizer_info"));
  EXPECT_EQ(configured["tokenizer_class"], "LlamaTokenizer");
  EXPECT_EQ(configured["pad_token"], "<pad>");
}

TEST_F(LlamaTest, CompletesSeveralTexts) {
  const Json json = parsed(
      post("/completion",
           {{"prompt", {"a", "b"}}, {"n_cmpl", 2}, {"n_probs", 2}, {"return_tokens", true}}));
  ASSERT_EQ(json.size(), 4u);
  EXPECT_EQ(json[3]["index"], 3);
  EXPECT_EQ(json[3]["tokens"], (Json{65, 65, 65}));
  ASSERT_EQ(json[0]["completion_probabilities"].size(), 3u);
  EXPECT_EQ(json[0]["completion_probabilities"][0]["top_logprobs"].size(), 2u);
}

TEST_F(LlamaTest, StreamsACompletion) {
  const auto exchange = post("/completion", {{"prompt", "a"}, {"stream", true}});
  EXPECT_EQ(exchange->response.content_type, "text/event-stream; charset=utf-8");
  EXPECT_TRUE(exchange->finished);
  const auto all = events(exchange);
  ASSERT_EQ(all.size(), 3u) << "without [DONE]";
  EXPECT_EQ(all[0]["content"], "Hel");
  EXPECT_EQ(all[0]["stop"], false);
  EXPECT_EQ(all[0]["tokens"], Json::array({65}));
  EXPECT_EQ(all[1]["content"], "lo");
  EXPECT_EQ(all[2]["content"], "");
  EXPECT_EQ(all[2]["stop"], true);
  EXPECT_EQ(all[2]["stop_type"], "eos");
  EXPECT_EQ(all[2]["tokens_predicted"], 3);
  error_ = "broken";
  EXPECT_EQ(
      events(post("/completion", {{"prompt", "a"}, {"stream", true}})).back()["error"]["message"],
      "broken");
}

TEST_F(LlamaTest, HonoursRefusesOrNamesFields) {
  post("/completion", {{"prompt", "a"},
                       {"samplers", {"top_k", "typ_p", "temperature"}},
                       {"seed", -1},
                       {"repeat_penalty", 1.5},
                       {"repeat_last_n", 0},
                       {"cache_prompt", true},
                       {"id_slot", -1},
                       {"n_keep", 5},
                       {"timings_per_token", true},
                       {"dynatemp_range", 0},
                       {"lora", Json::array()}});
  EXPECT_EQ(options_.sampling.samplers, "top_k;typical_p;temperature");
  EXPECT_EQ(options_.sampling.repetition_penalty, 1);
  EXPECT_TRUE(warned("n_keep"));
  EXPECT_TRUE(warned("timings_per_token"));
  EXPECT_EQ(warnings_.size(), 2u);
  const auto refuses = [&](const char* name, const Json& value) {
    refused(post("/completion", {{"prompt", "a"}, {name, value}}), 400, name);
  };
  refuses("dynatemp_range", 0.5);
  refuses("min_keep", 2);
  refuses("post_sampling_probs", true);
  refuses("lora", {{{"id", 0}, {"scale", 1}}});
  refuses("samplers", 1);
  refuses("samplers", {1});
  refuses("echo", true);
  refuses("n_indent", 2);
  refuses("suffix", "a");
  refused(post("/completion", {{"prompt", {{"prompt_string", "a"}}}}), 400, "prompt");
  refused(ask("POST", "/completion", "[]"), 400, nullptr, "body");
}

TEST_F(LlamaTest, FillsInTheMiddle) {
  refused(post("/infill", {{"input_prefix", "a"}}), 400, "model", "middle");
  const text::Tokenizer tokenizer =
      with_middle_tokens({"<|fim_prefix|>", "<|fim_suffix|>", "<|fim_middle|>", "<|file_sep|>"});
  model_->tokenizer = tokenizer;
  const auto post_infill = [&](const Json& body) {
    const auto exchange = post("/infill", body);
    EXPECT_EQ(exchange->response.status, 200) << exchange->response.body;
    return tokenizer.decode(prompts_.back());
  };
  EXPECT_EQ(post_infill({{"input_prefix", "a"}, {"input_suffix", "b"}, {"prompt", "c"}}),
            "<|fim_prefix|>a<|fim_suffix|>b<|fim_middle|>c");
  EXPECT_EQ(post_infill({{"input_prefix", "<|fim_middle|>"},
                         {"input_extra", {{{"filename", "x.h"}, {"text", "e"}}}}}),
            "<|file_sep|>x.h\ne<|file_sep|>filename\n<|fim_prefix|><|fim_middle|><|fim_suffix|>"
            "<|fim_middle|>");
  EXPECT_EQ(std::count(prompts_.back().begin(), prompts_.back().end(),
                       *tokenizer.id_of("<|fim_middle|>")),
            1)
      << "texts of a request are no special tokens";
  model_->tokenizer = with_middle_tokens({"<fim_prefix>", "<fim_suffix>", "<fim_middle>"});
  post("/infill", {{"input_suffix", "b"}, {"input_extra", {{{"text", "e"}}}}});
  EXPECT_EQ(model_->tokenizer->decode(prompts_.back()),
            "\n\n--- snippet ---\n\ne<fim_prefix><fim_suffix>b<fim_middle>");
  for (const Json& extra : {Json{1}, Json{{{"filename", "x"}}}, Json{{{"text", 1}}}})
    refused(post("/infill", {{"input_extra", extra}}), 400, "input_extra");
  refused(post("/infill", {{"input_extra", 1}}), 400, "input_extra");
  refused(post("/infill", {{"prompt", {1}}}), 400, "prompt");
  EXPECT_EQ(parsed(post("/infill", {{"input_prefix", "a"}}))["content"], "Hello");
}

TEST_F(LlamaTest, AppliesTheTemplate) {
  const Json json = parsed(post("/apply-template", chat()));
  EXPECT_EQ(json["prompt"], "chat: [{\"role\":\"user\",\"content\":\"hi\"}]");
  EXPECT_TRUE(prompts_.empty());
  const Json eos = {{{"role", "user"}, {"content", tokenizer_->text_of(*tokenizer_->eos_id())}}};
  const std::string text = parsed(post("/apply-template", {{"messages", eos}}))["prompt"];
  EXPECT_EQ(text.find("\xEF\xB7\x90"), text.npos) << "without marks";
  refused(post("/apply-template", Json::object()), 400, "messages");
  generator().chat.reset();
  refused(post("/apply-template", chat()), 400, "messages", "no chat template");
}

TEST_F(LlamaTest, ComputesVectors) {
  const Json json = parsed(post("/embedding", {{"content", {"a", "b"}}}));
  ASSERT_EQ(json.size(), 2u);
  EXPECT_EQ(json[1]["index"], 1);
  EXPECT_GT(json[1]["embedding"][0].size(), 2u);
  EXPECT_EQ(parsed(post("/embeddings", {{"content", "a"}}))[0], json[0]);
  EXPECT_EQ(parsed(post("/embeddings", {{"input", "a"}}))["object"], "list") << "OpenAI's format";
  refused(post("/embedding", {{"content", "a"}, {"embd_normalize", 1}}), 400, "embd_normalize");
  refused(post("/embedding", Json::object()), 400, "content");
}

TEST_F(LlamaTest, ShowsPropertiesSlotsAndAdapters) {
  generator().engine->most_sequences = 3;
  generator().engine->status = [] { return infer::EngineStatus{.running = 1}; };
  generator().chat->source = "{{ messages }}";
  const Json properties = parsed(ask("GET", "/props"));
  EXPECT_EQ(properties["total_slots"], 3);
  EXPECT_EQ(properties["chat_template"], "{{ messages }}");
  EXPECT_EQ(properties["default_generation_settings"]["n_ctx"], 512);
  EXPECT_EQ(properties["modalities"]["vision"], false);
  const Json slots = parsed(ask("GET", "/slots"));
  ASSERT_EQ(slots.size(), 3u);
  EXPECT_EQ(slots[0]["is_processing"], true);
  EXPECT_EQ(slots[1]["is_processing"], false);
  EXPECT_EQ(parsed(ask("GET", "/lora-adapters")), Json::array());
  model_->facts.parent = "base";
  EXPECT_EQ(parsed(ask("GET", "/lora-adapters"))[0]["path"], "first");
  EXPECT_EQ(ask("POST", "/lora-adapters", "[]")->response.status, 501);
}

TEST_F(LlamaTest, ServesOpenAIsRoutesWithoutTheirPrefix) {
  EXPECT_EQ(parsed(post("/chat/completions", chat()))["object"], "chat.completion");
  EXPECT_EQ(parsed(post("/completions", {{"prompt", "a"}}))["object"], "text_completion");
  EXPECT_EQ(parsed(ask("GET", "/models"))["data"].size(), 6u);
  const Json ranking = {{"model", "third"}, {"query", "a"}, {"documents", {"b", "c"}}};
  EXPECT_EQ(parsed(post("/reranking", ranking))["results"].size(), 2u);
}

TEST_F(LlamaTest, AnswersByTheKindOfTheModel) {
  const auto answer = [&](const char* model, Json body) {
    body["model"] = model;
    return parsed(post("/", body));
  };
  EXPECT_TRUE(answer("second/model", {{"inputs", "a"}})[0][0].is_number());
  EXPECT_TRUE(answer("third", {{"query", "a"}, {"texts", {"b"}}})[0].contains("score"));
  EXPECT_TRUE(answer("fourth", {{"inputs", "a"}})[0].contains("label"));
  EXPECT_TRUE(answer("fifth", {{"inputs", "a"}})[0][0].contains("value"));
  EXPECT_TRUE(parsed(post("/", {{"inputs", "a"}}))[0][0].is_number()) << "the first that can";
  refused_plainly(post("/", {{"model", "first"}, {"inputs", "a"}}), 424, "embeddings", "Backend");
}

TEST_F(LlamaTest, DecodesTokens) {
  const std::vector<int32_t> ids = tokenizer_->encode("some");
  EXPECT_EQ(parsed(post("/decode", {{"ids", ids}})), Json::array({"some"}));
  std::vector<int32_t> ended = ids;
  ended.push_back(*tokenizer_->eos_id());
  EXPECT_EQ(parsed(post("/decode", {{"ids", {ids, ended}}})), (Json{"some", "some"}));
  EXPECT_NE(parsed(post("/decode", {{"ids", ended}, {"skip_special_tokens", false}})),
            Json::array({"some"}));
  refused_plainly(post("/decode", {{"ids", "a"}}), 422, "ids", "Validation");
  refused_plainly(post("/decode", {{"ids", {9999}}}), 422, "ids", "Validation");
}

TEST_F(LlamaTest, DescribesAllRoutes) {
  add_openapi_route(router_);
  const Json json = parsed(ask("GET", "/openapi.json"));
  for (const http::Route& route : router_.routes())
    EXPECT_TRUE(json["paths"].contains(route.path)) << route.path;
  const auto schema = [&](const char* path) {
    return json["paths"][path]["post"]["requestBody"]["content"]["application/json"]["schema"];
  };
  EXPECT_EQ(schema("/v1/chat/completions")["required"], Json::array({"messages"}));
  EXPECT_EQ(schema("/api/chat")["properties"]["options"]["properties"]["top_p"]["maximum"], 1);
  EXPECT_EQ(schema("/completions"), schema("/v1/completions"));
  for (const RouteFields& route : routes_with_fields()) {
    if (!json["paths"].contains(route.path)) continue;  // those of --jobs
    for (const FieldInfo& field : route.fields) {
      const std::string name = field.name.substr(0, field.name.find('.'));
      EXPECT_TRUE(schema(route.path)["properties"].contains(name)) << route.path;
    }
  }
}

}  // namespace
}  // namespace fovea::serve
