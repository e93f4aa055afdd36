#include "serve/served_model.h"

namespace fovea::serve {
namespace {

constexpr int64_t kUnsetTokens = -2;  // -1 is a valid value of max_tokens

}  // namespace

const text::Tokenizer& ServedModel::needs_tokenizer() const {
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

const infer::Embedder& ServedModel::needs_embedder() const {
  if (embedder) return *embedder;
  throw ApiError{
      400, "model: " + facts.name + ": does not compute embeddings; expected an embedding model",
      "model", "wrong_model"};
}

infer::RerankQueue& ServedModel::needs_reranker() const {
  if (rerank_queue) return *rerank_queue;
  throw ApiError{400, "model: " + facts.name + ": is not a re-ranker; expected a cross-encoder",
                 "model", "wrong_model"};
}

const infer::SparseEmbedder& ServedModel::needs_sparse_embedder() const {
  if (sparse_embedder) return *sparse_embedder;
  throw ApiError{400,
                 "model: " + facts.name +
                     ": does not compute sparse vectors; expected a sparse embedding model",
                 "model", "wrong_model"};
}

const infer::MultiVectorEmbedder& ServedModel::needs_multi_vector_embedder() const {
  if (multi_vector_embedder) return *multi_vector_embedder;
  throw ApiError{400,
                 "model: " + facts.name +
                     ": does not compute vectors of tokens; expected a late interaction model",
                 "model", "wrong_model"};
}

const infer::Classifier& ServedModel::needs_classifier() const {
  if (classifier) return *classifier;
  throw ApiError{400,
                 "model: " + facts.name + ": does not label texts; expected a sequence classifier",
                 "model", "wrong_model"};
}

void ServedModel::end_work() {
  engine.reset();
  open_adapter = nullptr;
  embed_queue.reset();
  rerank_queue.reset();
  sparse_queue.reset();
  multi_vector_queue.reset();
  classify_queue.reset();
  if (worker) worker->stop();
}

std::shared_ptr<const text::JsonVocabulary> ServedModel::json_vocabulary() {
  const std::lock_guard lock(mutex_);
  if (json_vocabulary_) return json_vocabulary_;
  std::vector<int32_t> all = ends;
  if (const auto eos = needs_tokenizer().eos_id(); eos && all.empty()) all.push_back(*eos);
  json_vocabulary_ = std::make_shared<const text::JsonVocabulary>(needs_tokenizer(), all);
  return json_vocabulary_;
}

infer::GenerateOptions program_defaults() {
  infer::GenerateOptions options;
  options.max_tokens = kUnsetTokens;
  return options;
}

void set_defaults(ServedModel& model, const infer::GenerateOptions& options) {
  model.defaults = options;
  model.defaults.beams = 1;  // chats and completions are sampled; translations set their own beams
  if (options.max_tokens != kUnsetTokens) model.max_tokens = options.max_tokens;
}

}  // namespace fovea::serve
