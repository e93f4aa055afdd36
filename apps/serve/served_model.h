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
#include "fovea/embed_queue.h"
#include "fovea/engine.h"
#include "fovea/json_grammar.h"
#include "fovea/translate.h"
#include "serve/request.h"

namespace fovea::serve {

// What the API needs of an Engine; a test gives one of its own. Sinks are called on the engine's
// thread, later than submit() returns.
struct TextEngine {
  std::function<uint64_t(const std::vector<int32_t>&, const GenerateOptions&, Engine::Sink,
                         const Watch&)>
      submit;
  std::function<void(uint64_t)> cancel;
  std::function<EngineStatus()> status;
  std::function<int64_t(int64_t prompt_tokens, int64_t answers)> room;
  int64_t most_waiting = std::numeric_limits<int64_t>::max();

  bool full() const { return status().waiting >= most_waiting; }
};

// Of an encoder-decoder that reads one language and writes another.
struct Translator {
  // One line as the engine has to be asked for it, with so many hypotheses.
  std::function<TranslationRequest(const std::string& line, const std::string& source_prefix,
                                   int64_t hypotheses)>
      request;
  std::vector<TranslationDirection> directions;  // at least one; empty languages are any
  int64_t most_hypotheses = 1;
};

struct ModelFacts {
  std::string name;
  int64_t created = 0;  // seconds since 1970
  int64_t context = 0, vocabulary = 0, parameters = 0, width = 0;
  int64_t layers = 0, heads = 0;  // of the decoder
  bool encoder = false;           // reads the prompt
};

// One model behind the API.
class ServedModel {
 public:
  ModelFacts facts;
  std::optional<Tokenizer> tokenizer;
  std::optional<ChatFormat> chat;     // none: the model has no chat template
  GenerateOptions defaults;           // flags over generation_config.json over the program's
  std::vector<int32_t> ends;          // the tokens that end a text
  std::optional<int64_t> max_tokens;  // where a flag or generation_config.json says
  double most_seconds = 0;            // that an answer may take; 0 = as long as it likes
  // One of these: a model that writes (and perhaps translates), one that turns texts into vectors,
  // or one that scores pairs of texts.
  std::optional<TextEngine> engine;
  std::optional<Translator> translator;
  std::optional<Embedder> embedder;
  std::shared_ptr<EmbedQueue> embed_queue;  // beside embedder
  std::shared_ptr<RerankQueue> rerank_queue;

  // Throw ApiError 400 where the model has none.
  const Tokenizer& needs_tokenizer() const;
  const TextEngine& needs_engine() const;
  const Embedder& needs_embedder() const;
  RerankQueue& needs_reranker() const;
  void end_work();  // no answer is under way afterwards
  // Made at the first request that asks for JSON.
  std::shared_ptr<const JsonVocabulary> json_vocabulary();

 private:
  std::mutex mutex_;
  std::shared_ptr<const JsonVocabulary> json_vocabulary_;
};

// Flags of the program that stand over generation_config.json.
struct SamplingFlags {
  std::optional<double> temperature, top_p, min_p, typical_p, repetition_penalty;
  std::optional<int64_t> top_k, max_tokens;
};

// The program's options, where flags and generation_config.json say nothing: max_tokens = -1 tells
// that they do not.
GenerateOptions program_defaults();
// What generation_config.json made of them, then flags.
void set_defaults(ServedModel& model, const GenerateOptions& of_model, const SamplingFlags& flags);

}  // namespace fovea::serve
