#pragma once

#include <atomic>
#include <concepts>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "fovea/infer/classify.h"
#include "fovea/infer/embed_queue.h"
#include "fovea/infer/engine.h"
#include "fovea/infer/retrieval_queue.h"
#include "fovea/infer/translate.h"
#include "fovea/open.h"
#include "fovea/text/calls.h"
#include "fovea/text/chat.h"
#include "fovea/text/json_grammar.h"
#include "http/handler_pool.h"
#include "serve/request/request.h"

namespace fovea::serve {

// The functions of Engine that the API uses; tests replace them. Sinks are called on the engine's
// thread, possibly before submit() returns.
struct TextEngine {
  std::function<uint64_t(const infer::ImagePrompt&, const infer::GenerateOptions&,
                         infer::Engine::Sink, const infer::AttentionTraceOptions&)>
      submit;
  std::function<void(uint64_t)> cancel;
  std::function<infer::EngineStatus()> status;
  std::function<int64_t(int64_t prompt_tokens, int64_t generations)> room;
  int64_t most_waiting = std::numeric_limits<int64_t>::max();
  int64_t most_sequences = 1;  // that are in progress at a time

  bool full() const { return status().waiting >= most_waiting; }
};

// An encoder-decoder that translates.
struct Translator {
  // Returns the engine's request for one line, with `hypotheses` results.
  std::function<infer::TranslationRequest(
      const std::string& line, const infer::TranslationDirection& direction, int64_t hypotheses)>
      request;
  std::vector<infer::TranslationDirection>
      directions;  // at least one, if `languages` is empty; empty codes mean any language
  int64_t most_hypotheses = 1;
  // The codes of a model that translates between any two of them.
  std::vector<std::string> languages = {};
};

class ServedModel;

struct ModelFacts {
  std::string name;
  int64_t created = 0;  // seconds since 1970
  int64_t context = 0, vocabulary = 0, parameters = 0, width = 0;
  int64_t layers = 0, heads = 0;   // of the decoder
  bool encoder = false;            // the prompt is read by an encoder
  std::string parent = {};         // of an adapter: the name of its base
  int64_t weight_bytes = 0;        // 0 = unknown
  std::string weight_format = {};  // of most weights, such as "bf16"; empty = unknown
  ModelUse use = ModelUse::text;
};

// What a served model does: one of the following. kExpected ends the error of a request that the
// model cannot answer.

struct TextGenerator {
  static constexpr const char* kExpected =
      "has no language-model head; expected a model that generates text";
  std::optional<TextEngine> engine;      // unset once the server ends
  std::optional<text::ChatFormat> chat;  // unset: the model has no chat template
  text::MessageFormat message = {};      // of the chat template
  // The special tokens that are marks of reasoning, and of reasoning and calls.
  std::vector<int32_t> reasoning_marks = {}, marks = {};
  int64_t reasoning_tokens = -1;  // the default of requests
  // Command-line options override generation_config.json, which overrides the program's defaults.
  infer::GenerateOptions defaults;
  std::optional<int64_t> max_tokens;  // set by an option or generation_config.json
  std::vector<int32_t> ends;          // end-of-text tokens
  // Returns the prompt of a text that a chat template rendered; unset: the model reads no images.
  std::function<infer::ImagePrompt(const std::string& text, size_t count,
                                   const std::function<media::Image(size_t)>& image,
                                   const std::vector<std::string>& names)>
      image_prompt;
  std::string image_mark;  // see infer::image_mark()
  // The log-probabilities of the tokens of a text, as infer::score().
  std::function<std::vector<infer::TokenLogprob>(const std::vector<int32_t>& ids,
                                                 int64_t alternatives)>
      score;
  std::optional<Translator> translator;
  // Opens an adapter of this model, which uses its engine and its weights, while requests run.
  // Unset for adapters.
  std::function<std::shared_ptr<ServedModel>(const std::string& name, const model::AdapterUse& use)>
      open_adapter;
};

struct ServedEmbedder {
  static constexpr const char* kExpected =
      "does not compute embeddings; expected an embedding model";
  infer::Embedder model;
  std::shared_ptr<infer::EmbedQueue> queue;
};

struct ServedSparseEmbedder {
  static constexpr const char* kExpected =
      "does not compute sparse vectors; expected a sparse embedding model";
  infer::SparseEmbedder model;
  std::shared_ptr<infer::SparseQueue> queue;
};

struct ServedMultiVectorEmbedder {
  static constexpr const char* kExpected =
      "does not compute vectors of tokens; expected a late interaction model";
  infer::MultiVectorEmbedder model;
  std::shared_ptr<infer::MultiVectorQueue> queue;
};

struct ServedClassifier {
  static constexpr const char* kExpected = "does not label texts; expected a sequence classifier";
  infer::Classifier model;
  std::shared_ptr<infer::ClassifyQueue> queue;
};

// A model of entities, answers or masked words. It answers the requests one after another.
struct ServedTagger {
  static constexpr const char* kExpected =
      "finds no parts of texts; expected a model of entities, answers or masked words";
  infer::Classifier model;
  std::optional<ServedEmbedder> vectors = {};  // of a model of masked words
};

// A cross-encoder, which also labels texts.
struct ServedReranker {
  static constexpr const char* kExpected = "is not a re-ranker; expected a cross-encoder";
  std::shared_ptr<infer::RerankQueue> queue;
  ServedClassifier labels;
};

struct ServedSpeech {
  model::Model model;
};

// One model of the API.
class ServedModel {
 public:
  using Part = std::variant<std::monostate, TextGenerator, ServedEmbedder, ServedSparseEmbedder,
                            ServedMultiVectorEmbedder, ServedClassifier, ServedReranker,
                            ServedTagger, ServedSpeech>;
  ModelFacts facts;
  std::optional<text::Tokenizer> tokenizer;
  Json tokenizer_config = Json::object();  // of tokenizer_config.json, if the model has one
  double most_seconds = 0;                 // limit per request; 0 = unlimited
  // Does long work of requests one after another: it transcribes, scores prompts, and finds parts
  // of texts.
  std::shared_ptr<http::HandlerPool> worker;
  std::atomic<uint64_t> last_use = 0;  // larger than those of models that were used before
  Part part;

  // Returns the part of this type, or null if the model does something else. A re-ranker has a
  // classifier, and a model of masked words an embedder.
  template <class T>
  T* find() {
    if constexpr (std::same_as<T, ServedClassifier>)
      if (auto* const reranker = std::get_if<ServedReranker>(&part)) return &reranker->labels;
    if constexpr (std::same_as<T, ServedEmbedder>)
      if (auto* const tagger = std::get_if<ServedTagger>(&part))
        return tagger->vectors ? &*tagger->vectors : nullptr;
    return std::get_if<T>(&part);
  }
  template <class T>
  const T* find() const {
    return const_cast<ServedModel*>(this)->find<T>();
  }
  // Returns the part, or throws ApiError 400 if the model does something else.
  template <class T>
  T& needs() {
    if (T* const found = find<T>()) return *found;
    refuse_use(T::kExpected);
  }
  // These functions throw ApiError 400 if the model lacks the capability.
  const text::Tokenizer& needs_tokenizer() const;
  const TextEngine& needs_engine();
  void cancel(uint64_t request);  // of the engine, if it is not stopped
  void end_work();                // cancels all requests and stops the engines
  // Returns the vocabulary for constraints; it is created by the first request that requires JSON.
  std::shared_ptr<const text::JsonVocabulary> json_vocabulary();
  // Returns the one for messages, which also has the marks of the text generator.
  std::shared_ptr<const text::JsonVocabulary> message_vocabulary();

 private:
  std::shared_ptr<const text::JsonVocabulary> vocabulary_with(
      const std::vector<int32_t>& marks, std::shared_ptr<const text::JsonVocabulary>& known);
  [[noreturn]] void refuse_use(const char* expected) const;

  std::mutex mutex_;
  std::shared_ptr<const text::JsonVocabulary> json_vocabulary_, message_vocabulary_;
};

// Returns whether the model does what a part of this type does.
template <class Part>
bool is(const ServedModel& model) {
  return model.find<Part>() != nullptr;
}

// Returns the program's defaults, with max_tokens unset.
infer::GenerateOptions program_defaults();
// Sets the chat template, and the format of messages: `calls`, or what the template has.
void set_chat(TextGenerator& generator, std::optional<text::ChatFormat> chat,
              const text::CallFormat* calls, const std::optional<text::Tokenizer>& tokenizer);
// Sets the options of a request to the model's, and max_tokens to `tokens` unless the model has it.
// Throws ApiError 429 if the engine is full, before the text is tokenised.
void apply_defaults(GenerationRequest& request, ServedModel& model, int64_t tokens);
// Sets the defaults of requests to `options`: program_defaults(), overridden by
// generation_config.json and the program's options.
void set_defaults(TextGenerator& generator, const infer::GenerateOptions& options);

}  // namespace fovea::serve
