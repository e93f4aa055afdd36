#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "fovea/embed.h"

namespace fovea {

struct QueueOptions {
  int64_t batch_tokens = 0;    // computed at a time, padding included; 0 = as many as are fastest
  int64_t most_waiting = 256;  // requests; one more is refused
  // A request is also refused where so many tokens wait already.
  int64_t most_tokens = int64_t{1} << 20;
};

struct QueueStatus {
  int64_t waiting = 0, waiting_tokens = 0;        // requests, and what is left of them
  int64_t requests = 0, tokens = 0, batches = 0;  // since the start
};

class TokenQueue;

// An Embedder for many callers at once: their texts share batches of tokens, like lengths
// together, and each caller has its turn. A vector's bits do not depend on its company. All members
// are safe from any thread; the computing happens on a thread of the queue's own.
class EmbedQueue {
 public:
  // One of the two is given. Called once, on the queue's thread: do little in it.
  using Done = std::function<void(const Embeddings* embeddings, const char* error)>;

  explicit EmbedQueue(const Embedder& embedder, const QueueOptions& options = {});
  ~EmbedQueue();  // what waits is dropped

  // The request's number, or 0 where too much waits. Throws as Embedder::embed does for options
  // and texts that cannot be.
  uint64_t submit(const std::vector<std::string>& texts, const EmbedOptions& options, Done done);
  void cancel(uint64_t request);  // then `done` may never be called
  QueueStatus status() const;

 private:
  const Embedder embedder_;
  std::unique_ptr<TokenQueue> queue_;
};

// A Reranker in the same way.
class RerankQueue {
 public:
  // A score for each text.
  using Done = std::function<void(const std::vector<float>* scores, const char* error)>;

  explicit RerankQueue(const Reranker& reranker, const QueueOptions& options = {});
  ~RerankQueue();

  uint64_t submit(const std::string& query, const std::vector<std::string>& texts,
                  const RerankOptions& options, Done done);
  void cancel(uint64_t request);
  QueueStatus status() const;

 private:
  const Reranker reranker_;
  std::unique_ptr<TokenQueue> queue_;
};

}  // namespace fovea
