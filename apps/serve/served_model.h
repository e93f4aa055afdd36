#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "fovea/infer/classify.h"
#include "fovea/infer/embed_queue.h"
#include "fovea/infer/engine.h"
#include "fovea/infer/retrieval_queue.h"
#include "fovea/infer/translate.h"
#include "fovea/text/chat.h"
#include "fovea/text/json_grammar.h"
#include "http/handler_pool.h"
#include "serve/request.h"

namespace fovea::serve {

// The functions of Engine that the API uses; tests replace them. Sinks are called on the engine's
// thread, possibly before submit() returns.
struct TextEngine {
  std::function<uint64_t(const infer::ImagePrompt&, const infer::GenerateOptions&,
                         infer::Engine::Sink, const infer::AttentionTraceOptions&)>
      submit;
  std::function<void(uint64_t)> cancel;
  std::function<infer::EngineStatus()> status;
  std::function<int64_t(int64_t prompt_tokens, int64_t answers)> room;
  int64_t most_waiting = std::numeric_limits<int64_t>::max();

  bool full() const { return status().waiting >= most_waiting; }
};

// An encoder-decoder that translates.
struct Translator {
  // Returns the engine's request for one line, with `hypotheses` results.
  std::function<infer::TranslationRequest(const std::string& line, const std::string& source_prefix,
                                          int64_t hypotheses)>
      request;
  std::vector<infer::TranslationDirection>
      directions;  // at least one; empty codes mean any language
  int64_t most_hypotheses = 1;
};

struct ModelFacts {
  std::string name;
  int64_t created = 0;  // seconds since 1970
  int64_t context = 0, vocabulary = 0, parameters = 0, width = 0;
  int64_t layers = 0, heads = 0;  // of the decoder
  bool encoder = false;           // the prompt is read by an encoder
  std::string parent = {};        // of an adapter: the name of its base
};

// One model of the API.
class ServedModel {
 public:
  ModelFacts facts;
  std::optional<text::Tokenizer> tokenizer;
  std::optional<text::ChatFormat> chat;  // unset: the model has no chat template
  // Command-line options override generation_config.json, which overrides the program's defaults.
  infer::GenerateOptions defaults;
  // Returns the prompt of a text that a chat template rendered; unset: the model reads no pictures.
  std::function<infer::ImagePrompt(const std::string& text, size_t count,
                                   const std::function<media::Image(size_t)>& image,
                                   const std::vector<std::string>& names)>
      image_prompt;
  std::string image_mark;             // see fovea::image_mark()
  std::vector<int32_t> ends;          // end-of-text tokens
  std::optional<int64_t> max_tokens;  // set by an option or generation_config.json
  double most_seconds = 0;            // limit per request; 0 = unlimited
  // A model that generates sets engine (and translator if it translates), one that computes vectors
  // sets embedder and embed_queue, one that labels texts sets classifier and classify_queue, one
  // that scores pairs of texts also sets rerank_queue, and one that transcribes sets speech.
  std::optional<TextEngine> engine;
  // The log-probabilities of the tokens of a text, as score() in fovea/infer/generate.h.
  std::function<std::vector<infer::TokenLogprob>(const std::vector<int32_t>& ids,
                                                 int64_t alternatives)>
      score;
  std::optional<Translator> translator;
  std::optional<infer::Embedder> embedder;
  std::shared_ptr<infer::EmbedQueue> embed_queue;  // for embedder
  std::shared_ptr<infer::RerankQueue> rerank_queue;
  // A model that computes sparse vectors, or vectors of tokens, sets its queue.
  std::optional<infer::SparseEmbedder> sparse_embedder;
  std::shared_ptr<infer::SparseQueue> sparse_queue;
  std::optional<infer::MultiVectorEmbedder> multi_vector_embedder;
  std::shared_ptr<infer::MultiVectorQueue> multi_vector_queue;
  std::optional<infer::Classifier> classifier;
  std::shared_ptr<infer::ClassifyQueue> classify_queue;
  std::optional<model::Model> speech;
  // Does long work of requests one after another: it transcribes, and scores prompts.
  std::shared_ptr<http::HandlerPool> worker;
  // Opens an adapter of this model, which uses its engine and its weights, while requests run. Set
  // for models that generate text and are no adapters.
  std::function<std::shared_ptr<ServedModel>(const std::string& name, const model::AdapterUse& use)>
      open_adapter;

  // These functions throw ApiError 400 if the model lacks the capability.
  const text::Tokenizer& needs_tokenizer() const;
  const TextEngine& needs_engine() const;
  const infer::Embedder& needs_embedder() const;
  infer::RerankQueue& needs_reranker() const;
  const infer::SparseEmbedder& needs_sparse_embedder() const;
  const infer::MultiVectorEmbedder& needs_multi_vector_embedder() const;
  const infer::Classifier& needs_classifier() const;
  void end_work();  // cancels all requests and stops the engines
  // Returns the vocabulary for constraints; it is created by the first request that requires JSON.
  std::shared_ptr<const text::JsonVocabulary> json_vocabulary();

 private:
  std::mutex mutex_;
  std::shared_ptr<const text::JsonVocabulary> json_vocabulary_;
};

// Returns the program's defaults, with max_tokens unset.
infer::GenerateOptions program_defaults();
// Sets the defaults of requests to `options`: program_defaults(), overridden by
// generation_config.json and the program's options.
void set_defaults(ServedModel& model, const infer::GenerateOptions& options);

}  // namespace fovea::serve
