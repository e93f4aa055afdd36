#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "fovea/infer/embed_queue.h"
#include "fovea/infer/retrieval.h"

namespace fovea::infer {

class SparseRowQueue;
class MultiVectorRowQueue;

// A SparseEmbedder for concurrent callers, with the rules of EmbedQueue.
class SparseQueue {
 public:
  using Done = std::function<void(const SparseVectors* vectors, const Error* error)>;

  explicit SparseQueue(const SparseEmbedder& embedder, const QueueOptions& options = {});
  ~SparseQueue();

  uint64_t submit(const std::vector<std::string>& texts, TextRole role, const EmbedOptions& options,
                  Done done);
  void cancel(uint64_t request);
  QueueStatus status() const;

 private:
  const SparseEmbedder embedder_;
  std::unique_ptr<SparseRowQueue> queue_;
};

// The same kind of queue for a MultiVectorEmbedder.
class MultiVectorQueue {
 public:
  using Done = std::function<void(const MultiVectors* vectors, const Error* error)>;
  using ScoresDone = std::function<void(const RerankScores* scores, const Error* error)>;

  explicit MultiVectorQueue(const MultiVectorEmbedder& embedder, const QueueOptions& options = {});
  ~MultiVectorQueue();

  uint64_t submit(const std::vector<std::string>& texts, TextRole role, const EmbedOptions& options,
                  Done done);
  // See MultiVectorEmbedder::score().
  uint64_t submit_scores(const std::string& query, const std::vector<std::string>& texts,
                         const EmbedOptions& options, ScoresDone done);
  // Scores text i for query i: as many queries as texts, or one for all.
  uint64_t submit_scores(const std::vector<std::string>& queries,
                         const std::vector<std::string>& texts, const EmbedOptions& options,
                         ScoresDone done);
  void cancel(uint64_t request);
  QueueStatus status() const;

 private:
  const MultiVectorEmbedder embedder_;
  std::unique_ptr<MultiVectorRowQueue> queue_;
};

}  // namespace fovea::infer
