#include "serve/served_model.h"

#include <utility>

namespace fovea::serve {
namespace {

template <class Value, class Flag>
void take(const std::optional<Flag>& flag, Value& value) {
  if (flag) value = static_cast<Value>(*flag);
}

}  // namespace

const Tokenizer& ServedModel::needs_tokenizer() const {
  if (tokenizer) return *tokenizer;
  throw ApiError{400, "model: has no tokenizer; expected prompts of token ids", "model",
                 "no_tokenizer"};
}

const TextEngine& ServedModel::needs_engine() const {
  if (engine) return *engine;
  throw ApiError{
      400,
      "model: " + facts.name + ": has no language-model head; expected a model that generates text",
      "model", "wrong_model"};
}

const Embedder& ServedModel::needs_embedder() const {
  if (embedder) return *embedder;
  throw ApiError{
      400, "model: " + facts.name + ": does not compute embeddings; expected an embedding model",
      "model", "wrong_model"};
}

RerankQueue& ServedModel::needs_reranker() const {
  if (rerank_queue) return *rerank_queue;
  throw ApiError{400, "model: " + facts.name + ": is not a re-ranker; expected a cross-encoder",
                 "model", "wrong_model"};
}

void ServedModel::end_work() {
  engine.reset();
  embed_queue.reset();
  rerank_queue.reset();
}

std::shared_ptr<const JsonVocabulary> ServedModel::json_vocabulary() {
  const std::lock_guard lock(mutex_);
  if (json_vocabulary_) return json_vocabulary_;
  std::vector<int32_t> all = ends;
  if (const auto eos = needs_tokenizer().eos_id(); eos && all.empty()) all.push_back(*eos);
  json_vocabulary_ = std::make_shared<const JsonVocabulary>(needs_tokenizer(), all);
  return json_vocabulary_;
}

GenerateOptions program_defaults() {
  GenerateOptions options;
  options.max_tokens = -1;
  return options;
}

void set_defaults(ServedModel& model, const GenerateOptions& of_model, const SamplingFlags& flags) {
  model.defaults = of_model;
  model.defaults.beams = 1;  // chats and completions are sampled; translations set their own beams
  if (of_model.max_tokens >= 0) model.max_tokens = of_model.max_tokens;
  Sampling& sampling = model.defaults.sampling;
  take(flags.temperature, sampling.temperature);
  take(flags.top_k, sampling.top_k);
  take(flags.top_p, sampling.top_p);
  take(flags.min_p, sampling.min_p);
  take(flags.typical_p, sampling.typical_p);
  take(flags.repetition_penalty, sampling.repetition_penalty);
  if (flags.max_tokens) model.max_tokens = flags.max_tokens;
}

}  // namespace fovea::serve
