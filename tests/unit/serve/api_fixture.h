#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <deque>
#include <fstream>

#include "fovea/train/train_tokenizer.h"
#include "serve/router.h"
#include "support/temporary_folder.h"
#include "unit/http/fake_exchange.h"

namespace fovea::serve {

// The API over a fake engine that immediately produces the text set by the test.
class ApiTest : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    const TemporaryFolder folder;
    const std::string path = folder.path() + "/text.txt";
    std::ofstream(path) << "Some words, so that there is something to count. {\"name\": 1}\n";
    text::TokenizerTraining options;
    options.vocabulary = 270;
    embedder_ = new infer::Embedder(infer::Embedder::open("tests/goldens/sentence_model"));
    reranker_ = new infer::Reranker(infer::Reranker::open("tests/goldens/cross_encoder"));
    classifier_ = new infer::Classifier(infer::Classifier::open("tests/goldens/classifiers/texts"));
    sparse_ = new infer::SparseEmbedder(infer::SparseEmbedder::open("tests/goldens/sparse_model"));
    multiple_ = new infer::MultiVectorEmbedder(
        infer::MultiVectorEmbedder::open("tests/goldens/multi_vector_model"));
    tokenizer_ = new text::Tokenizer(train::train_tokenizer({path}, options, {})->tokenizer);
  }
  static void TearDownTestSuite() {
    delete tokenizer_;
    delete embedder_;
    delete reranker_;
    delete classifier_;
    delete sparse_;
    delete multiple_;
  }

  void SetUp() override {
    model_->facts = {"first", 1, 64, tokenizer_->size(), 1000, 8};
    model_->facts.layers = 3;
    model_->facts.heads = 2;
    model_->tokenizer = *tokenizer_;
    TextGenerator& generator = model_->part.emplace<TextGenerator>();
    generator.ends = {tokenizer_->eos_id().value()};
    generator.chat = text::ChatFormat{[this](const text::ChatRequest& request) {
      conversation_ = request;
      return "chat: " + request.messages.json();
    }};
    TextEngine engine;
    engine.submit = [this](const infer::ImagePrompt& prompt, const infer::GenerateOptions& options,
                           infer::Engine::Sink sink, const infer::AttentionTraceOptions& trace) {
      trace_options_ = trace;
      return submit(prompt.ids, options, sink);
    };
    engine.cancel = [this](uint64_t number) { cancelled_.push_back(number); };
    engine.status = [] { return infer::EngineStatus{}; };
    engine.room = [this](int64_t prompt, int64_t) { return most_room_ - prompt; };
    generator.engine = engine;
    other_->facts.name = "second/model";
    other_->part = ServedEmbedder{*embedder_, std::make_shared<infer::EmbedQueue>(*embedder_)};
    other_->facts.vocabulary = embedder_->tokenizer().size();
    third_->facts.name = "third";
    const infer::Classifier labels = infer::Classifier::of(*reranker_);
    third_->part = ServedReranker{std::make_shared<infer::RerankQueue>(*reranker_),
                                  {labels, std::make_shared<infer::ClassifyQueue>(labels)}};
    fourth_->facts.name = "fourth";
    fourth_->part =
        ServedClassifier{*classifier_, std::make_shared<infer::ClassifyQueue>(*classifier_)};
    fourth_->worker = std::make_shared<http::HandlerPool>(1, 64);
    fifth_->facts.name = "fifth";
    fifth_->part = ServedSparseEmbedder{*sparse_, std::make_shared<infer::SparseQueue>(*sparse_)};
    sixth_->facts.name = "sixth";
    sixth_->part = ServedMultiVectorEmbedder{*multiple_,
                                             std::make_shared<infer::MultiVectorQueue>(*multiple_)};
    generator.translator =
        Translator{[](const std::string& line, const infer::TranslationDirection& direction,
                      int64_t hypotheses) {
                     const std::string text = direction.source_prefix + line;
                     infer::TranslationRequest request;
                     request.source.assign(text.begin(), text.end());
                     request.options.generations = hypotheses;
                     return request;
                   },
                   {{}},
                   64};
    router_ = all_routes(api_);
  }

  // Adds models of entities, answers and masked words, with these names.
  void add_taggers() {
    for (const char* task : {"words", "answers", "masks"}) {
      const auto model = std::make_shared<ServedModel>();
      model->facts.name = task;
      model->part =
          ServedTagger{infer::Classifier::open(std::string("tests/goldens/classifiers/") + task)};
      model->worker = std::make_shared<http::HandlerPool>(1, 64);
      api_.add(model);
    }
  }

  TextGenerator& generator() { return model_->needs<TextGenerator>(); }

  uint64_t submit(const std::vector<int32_t>& ids, const infer::GenerateOptions& options,
                  const infer::Engine::Sink& sink) {
    prompts_.push_back(ids);
    options_ = options;
    if (static_cast<int64_t>(prompts_.size()) > most_taken_) return 0;
    if (holding_) {
      sinks_.push_back(sink);
      return prompts_.size();
    }
    pending_.push_back([this, sink, options, length = ids.size()] {
      for (int64_t generation = 0; generation < options.generations; ++generation) {
        write(sink, generation, options.logprobs, static_cast<int64_t>(length));
      }
    });
    return prompts_.size();
  }

  void write(const infer::Engine::Sink& sink, int64_t generation, int64_t logprobs,
             int64_t prompt_tokens) {
    infer::Generation whole;
    whole.prompt_tokens = prompt_tokens;
    whole.finish = finish_;
    const infer::TokenLogprob logprob = {-0.5f, {{65, -0.5f}, {66, -INFINITY}}};
    for (const std::string& piece : pieces_) {
      infer::Event event;
      event.generation = generation;
      event.id = 65;
      event.text = piece;
      if (logprobs >= 0) event.logprob = &logprob;
      if (trace_options_.attention || trace_options_.hidden) event.trace = &traced_;
      whole.ids.push_back(65);
      whole.text += piece;
      if (logprobs >= 0) whole.logprobs.push_back(logprob);
      if (!sink(event)) return;
      if (!error_.empty()) {
        const Error error(error_kind_, error_);
        infer::Event broken;
        broken.error = &error;
        sink(broken);
        return;
      }
    }
    infer::Event last;
    last.generation = generation;
    last.finished = &whole;
    sink(last);
  }

  std::shared_ptr<http::FakeExchange> ask(const std::string& method, const std::string& path,
                                          const std::string& body = "",
                                          const std::string& type = "application/json") {
    auto exchange = std::make_shared<http::FakeExchange>();
    http::Request request;
    request.headers = {{"content-type", type}};
    request.method = method;
    request.path = path;
    request.body = body;
    request.id = request_id_;
    const auto found = router_.find(request);
    std::get<const http::Route*>(found)->handler(request, exchange);
    while (!pending_.empty()) {
      const auto next = std::move(pending_.front());
      pending_.pop_front();
      next();
    }
    if (!holding_ && !exchange->streamed) exchange->wait();
    return exchange;
  }
  std::shared_ptr<http::FakeExchange> post(const std::string& path, const Json& body) {
    return ask("POST", path, body.dump());
  }
  static Json parsed(const std::shared_ptr<http::FakeExchange>& exchange) {
    return Json::parse(exchange->response.body, nullptr, false);
  }
  // Returns the objects of a stream; "[DONE]" stays a string.
  static std::vector<Json> events(const std::shared_ptr<http::FakeExchange>& exchange) {
    std::vector<Json> all;
    for (const std::string& piece : exchange->pieces) {
      for (size_t begin = 0, end; begin < piece.size(); begin = end + 2) {  // of each event
        end = piece.find("\n\n", begin);
        if (piece.substr(begin, 6) != "data: " || end == piece.npos) {
          ADD_FAILURE() << piece;
          break;
        }
        const std::string data = piece.substr(begin + 6, end - begin - 6);
        all.push_back(data == "[DONE]" ? Json(data) : Json::parse(data));
      }
    }
    return all;
  }
  void refused(const std::shared_ptr<http::FakeExchange>& exchange, int status, const Json& param,
               const std::string& text = "") {
    EXPECT_EQ(exchange->response.status, status) << exchange->response.body;
    const Json error = parsed(exchange)["error"];
    EXPECT_EQ(error["param"], param) << error;
    EXPECT_NE(error["message"].get<std::string>().find(text), std::string::npos) << error;
  }
  // Expects this error from a route whose errors are {"error": text}.
  void refused_plainly(const std::shared_ptr<http::FakeExchange>& exchange, int status,
                       const std::string& text, const Json& type = nullptr) {
    EXPECT_EQ(exchange->response.status, status) << exchange->response.body;
    const Json json = parsed(exchange);
    EXPECT_NE(json["error"].get<std::string>().find(text), std::string::npos) << json;
    EXPECT_EQ(json.value("error_type", Json()), type);
  }
  static Json chat(Json more = Json::object()) {
    more["messages"] = {{{"role", "user"}, {"content", "hi"}}};
    return more;
  }

  static inline text::Tokenizer* tokenizer_ = nullptr;
  static inline infer::Embedder* embedder_ = nullptr;
  static inline infer::Reranker* reranker_ = nullptr;
  static inline infer::Classifier* classifier_ = nullptr;
  static inline infer::SparseEmbedder* sparse_ = nullptr;
  static inline infer::MultiVectorEmbedder* multiple_ = nullptr;
  const std::string kChatPath = "/v1/chat/completions", kCompletionPath = "/v1/completions";
  std::shared_ptr<ServedModel> model_ = std::make_shared<ServedModel>();
  std::shared_ptr<ServedModel> other_ = std::make_shared<ServedModel>();
  std::shared_ptr<ServedModel> third_ = std::make_shared<ServedModel>();
  std::shared_ptr<ServedModel> fourth_ = std::make_shared<ServedModel>();
  std::shared_ptr<ServedModel> fifth_ = std::make_shared<ServedModel>();
  std::shared_ptr<ServedModel> sixth_ = std::make_shared<ServedModel>();
  Api api_{{model_, other_, fourth_, third_, fifth_, sixth_}};
  http::Router router_;

  std::vector<std::string> pieces_ = {"Hel", "", "lo"};
  infer::FinishReason finish_ = infer::FinishReason::end;
  std::string request_id_, error_;
  ErrorKind error_kind_ = ErrorKind::Failed;
  bool holding_ = false;
  int64_t most_room_ = 1'000'000;   // tokens that fit into the cache
  int64_t most_taken_ = 1'000'000;  // accepted requests; later ones are refused

  std::deque<std::function<void()>> pending_;
  std::vector<std::vector<int32_t>> prompts_;
  infer::GenerateOptions options_;
  infer::AttentionTraceOptions trace_options_;
  infer::AttentionTrace traced_{{{0, 0.75f}}, {1.5f, -2}};
  text::ChatRequest conversation_;
  std::vector<uint64_t> cancelled_;
  std::vector<infer::Engine::Sink> sinks_;
};

}  // namespace fovea::serve
