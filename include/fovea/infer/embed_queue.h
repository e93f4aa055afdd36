#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "fovea/core/error.h"
#include "fovea/infer/embed.h"

namespace fovea::infer {

struct QueueOptions {
  int64_t batch_tokens = 0;    // per forward pass, padding included; 0 = a fast default
  int64_t most_waiting = 256;  // maximum unfinished requests; further ones are refused
  // A request is also refused if more than this number of tokens are waiting.
  int64_t most_tokens = int64_t{1} << 20;
};

struct QueueStatus {
  int64_t waiting = 0, waiting_tokens = 0;  // unfinished requests, and tokens not yet in a batch
  int64_t requests = 0, tokens = 0, batches = 0;  // totals since construction
};

class TokenQueue;

// An Embedder for concurrent callers. Texts of similar length share a batch, and requests are
// served in turn. A vector's bits do not depend on the other texts in its batch. All members are
// safe to call from any thread; the model runs on the queue's own thread. The queue keeps a copy of
// the embedder. Do not destroy it in a callback.
class EmbedQueue {
 public:
  // Receives either the embeddings or an error; the other argument is null. The arguments are valid
  // during the call only. Called once, on the queue's thread, unless the request is dropped. Must
  // not throw, and should return quickly.
  using Done = std::function<void(const Embeddings* embeddings, const Error* error)>;

  explicit EmbedQueue(const Embedder& embedder, const QueueOptions& options = {});
  ~EmbedQueue();  // drops unfinished requests

  // Returns the request's number, or 0 if the queue is full. Throws the errors of Embedder::embed()
  // for invalid options and texts. Tokenises the texts before it returns; does not call
  // options.stop afterwards. May call options.name_of_text on the queue's thread.
  uint64_t submit(const std::vector<std::string>& texts, const EmbedOptions& options, Done done);
  void cancel(uint64_t request);  // drops the request, unless it is complete
  QueueStatus status() const;

 private:
  const Embedder embedder_;
  std::unique_ptr<TokenQueue> queue_;
};

// One score for each text, and the number of tokens of all pairs.
struct RerankScores {
  std::vector<float> values;
  int64_t tokens = 0;
};

// The same kind of queue for a Reranker, with the same rules.
class RerankQueue {
 public:
  // See EmbedQueue::Done.
  using Done = std::function<void(const RerankScores* scores, const Error* error)>;

  explicit RerankQueue(const Reranker& reranker, const QueueOptions& options = {});
  ~RerankQueue();

  uint64_t submit(const std::string& query, const std::vector<std::string>& texts,
                  const RerankOptions& options, Done done);
  // Scores text i for query i: as many queries as texts, or one for all.
  uint64_t submit(const std::vector<std::string>& queries, const std::vector<std::string>& texts,
                  const RerankOptions& options, Done done);
  void cancel(uint64_t request);
  QueueStatus status() const;

 private:
  const Reranker reranker_;
  std::unique_ptr<TokenQueue> queue_;
};

}  // namespace fovea::infer
