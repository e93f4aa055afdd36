#pragma once

// A BatchQueue of a model whose output for a text is one row of floats.

#include "embed/batch_queue.h"

namespace fovea::infer {

class TokenQueue {
 public:
  // [B, T] -> f32 [B, width]; see BatchQueue::Model.
  using Model = std::function<Tensor(const TokenBatch& batch, int64_t group)>;
  // Receives either rows [texts, width] (zeros for texts without tokens) or an error.
  using Done = std::function<void(std::vector<float> rows, const Error* error)>;

  TokenQueue(Model model, int64_t width, const QueueOptions& options);

  bool full() const { return queue_.full(); }
  uint64_t add(std::vector<TokenizedText> texts, int64_t group, Done done);
  void cancel(uint64_t number) { queue_.cancel(number); }
  QueueStatus status() const { return queue_.status(); }

 private:
  const int64_t width_;
  BatchQueue<TokenizedText, std::vector<float>> queue_;
};

}  // namespace fovea::infer
