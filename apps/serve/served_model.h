#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "fovea/chat.h"
#include "fovea/classify.h"
#include "fovea/embed_queue.h"
#include "fovea/engine.h"
#include "fovea/json_grammar.h"
#include "fovea/retrieval_queue.h"
#include "fovea/translate.h"
#include "http/handler_pool.h"
#include "serve/request.h"

namespace fovea::serve {

// The functions of Engine that the API uses; tests replace them. Sinks are called on the engine's
// thread, possibly before submit() returns.
struct TextEngine {
  std::function<uint64_t(const ImagePrompt&, const GenerateOptions&, Engine::Sink,
                         const AttentionTraceOptions&)>
      submit;
  std::function<void(uint64_t)> cancel;
  std::function<EngineStatus()> status;
  std::function<int64_t(int64_t prompt_tokens, int64_t answers)> room;
  int64_t most_waiting = std::numeric_limits<int64_t>::max();

  bool full() const { return status().waiting >= most_waiting; }
};

// An encoder-decoder that translates.
struct Translator {
  // Returns the engine's request for one line, with `hypotheses` results.
  std::function<TranslationRequest(const std::string& line, const std::string& source_prefix,
                                   int64_t hypotheses)>
      request;
  std::vector<TranslationDirection> directions;  // at least one; empty codes mean any language
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
  std::optional<Tokenizer> tokenizer;
  std::optional<ChatFormat> chat;  // unset: the model has no chat template
  // Command-line options override generation_config.json, which overrides the program's defaults.
  GenerateOptions defaults;
  // Returns the prompt of a text that a chat template rendered; unset: the model reads no pictures.
  std::function<ImagePrompt(const std::string& text, size_t count,
                            const std::function<Image(size_t)>& image,
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
  // The log-probabilities of the tokens of a text, as score() in fovea/generate.h.
  std::function<std::vector<TokenLogprob>(const std::vector<int32_t>& ids, int64_t alternatives)>
      score;
  std::optional<Translator> translator;
  std::optional<Embedder> embedder;
  std::shared_ptr<EmbedQueue> embed_queue;  // for embedder
  std::shared_ptr<RerankQueue> rerank_queue;
  // A model that computes sparse vectors, or vectors of tokens, sets its queue.
  std::optional<SparseEmbedder> sparse_embedder;
  std::shared_ptr<SparseQueue> sparse_queue;
  std::optional<MultiVectorEmbedder> multi_vector_embedder;
  std::shared_ptr<MultiVectorQueue> multi_vector_queue;
  std::optional<Classifier> classifier;
  std::shared_ptr<ClassifyQueue> classify_queue;
  std::optional<Model> speech;
  // Does long work of requests one after another: it transcribes, and scores prompts.
  std::shared_ptr<http::HandlerPool> worker;
  // Opens an adapter of this model, which uses its engine and its weights, while requests run. Set
  // for models that generate text and are no adapters.
  std::function<std::shared_ptr<ServedModel>(const std::string& name, const AdapterUse& use)>
      open_adapter;

  // These functions throw ApiError 400 if the model lacks the capability.
  const Tokenizer& needs_tokenizer() const;
  const TextEngine& needs_engine() const;
  const Embedder& needs_embedder() const;
  RerankQueue& needs_reranker() const;
  const SparseEmbedder& needs_sparse_embedder() const;
  const MultiVectorEmbedder& needs_multi_vector_embedder() const;
  const Classifier& needs_classifier() const;
  void end_work();  // cancels all requests and stops the engines
  // Returns the vocabulary for constraints; it is created by the first request that requires JSON.
  std::shared_ptr<const JsonVocabulary> json_vocabulary();

 private:
  std::mutex mutex_;
  std::shared_ptr<const JsonVocabulary> json_vocabulary_;
};

// Returns the program's defaults, with max_tokens unset.
GenerateOptions program_defaults();
// Sets the defaults of requests to `options`: program_defaults(), overridden by
// generation_config.json and the program's options.
void set_defaults(ServedModel& model, const GenerateOptions& options);

}  // namespace fovea::serve
