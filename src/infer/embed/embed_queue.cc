#include "fovea/infer/embed_queue.h"

#include <algorithm>

#include "base/error.h"
#include "base/float_mode.h"
#include "embed/embedder_parts.h"
#include "embed/token_queue.h"
#include "tensor/tape.h"

namespace fovea::infer {
namespace {

// Returns the rows of a queue as a tensor [N, width].
Tensor as_tensor(const std::vector<float>& rows, int64_t width) {
  return tensor_of(rows, {std::ssize(rows) / width, width});
}

}  // namespace

EmbedQueue::EmbedQueue(const Embedder& embedder, const QueueOptions& options)
    : embedder_(embedder),
      // Only texts after prompts of the same length share a batch: some models exclude the prompt
      // from pooling.
      queue_(std::make_unique<TokenQueue>(
          [this](const TokenBatch& batch, int64_t prompt) {
            return embedder_.parts().model.embed(batch, prompt, DType::f32);
          },
          embedder.width(), options)) {}
EmbedQueue::~EmbedQueue() = default;

uint64_t EmbedQueue::submit(const std::vector<std::string>& texts, const EmbedOptions& options,
                            Done done) {
  const FloatMode mode;
  if (queue_->full()) return 0;
  const SentenceModules& modules = embedder_.parts().model.modules;
  EmbedInput input = read_texts(embedder_.parts().model, texts, options);
  auto finish = [&modules, options, result = std::move(input.result), done = std::move(done)](
                    const std::vector<float>& rows, const Error* error) mutable {
    if (error != nullptr) return done(nullptr, error);
    try {
      const NoGradient off;
      const Tensor vectors = finished(as_tensor(rows, modules.width), modules, options);
      check_finite(vectors, options);
      result.values = to_floats(vectors);
    } catch (const Error& wrong) {
      return done(nullptr, &wrong);
    }
    done(&result, nullptr);
  };
  return queue_->add(std::move(input.texts), input.prompt, std::move(finish));
}

void EmbedQueue::cancel(uint64_t request) { queue_->cancel(request); }
QueueStatus EmbedQueue::status() const { return queue_->status(); }

RerankQueue::RerankQueue(const Reranker& reranker, const QueueOptions& options)
    : reranker_(reranker),
      queue_(std::make_unique<TokenQueue>(
          [this](const TokenBatch& batch, int64_t) {
            return reranker_.parts().model.logits(batch, DType::f32);
          },
          1, options)) {}
RerankQueue::~RerankQueue() = default;

uint64_t RerankQueue::submit(const std::string& query, const std::vector<std::string>& texts,
                             const RerankOptions& options, Done done) {
  return submit(std::vector{query}, texts, options, std::move(done));
}

uint64_t RerankQueue::submit(const std::vector<std::string>& queries,
                             const std::vector<std::string>& texts, const RerankOptions& options,
                             Done done) {
  const FloatMode mode;
  if (queue_->full()) return 0;
  const CrossEncoder& model = reranker_.parts().model;
  std::vector<TokenizedText> pairs = read_pairs(model, queries, texts, options);
  RerankScores scores;
  for (const TokenizedText& pair : pairs) scores.tokens += std::ssize(pair.ids);
  auto finish = [&model, options, scores, done = std::move(done)](const std::vector<float>& rows,
                                                                  const Error* error) mutable {
    if (error != nullptr) return done(nullptr, error);
    try {
      const NoGradient off;
      scores.values = scores_of(as_tensor(rows, 1), model, options);
    } catch (const Error& wrong) {
      return done(nullptr, &wrong);
    }
    done(&scores, nullptr);
  };
  return queue_->add(std::move(pairs), 0, std::move(finish));
}

void RerankQueue::cancel(uint64_t request) { queue_->cancel(request); }
QueueStatus RerankQueue::status() const { return queue_->status(); }

}  // namespace fovea::infer
