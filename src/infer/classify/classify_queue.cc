#include <algorithm>

#include "base/float_mode.h"
#include "classify/classifier_parts.h"
#include "embed/token_queue.h"

namespace fovea::infer {

ClassifyQueue::ClassifyQueue(const Classifier& classifier, const QueueOptions& options)
    : classifier_(classifier),
      queue_(std::make_unique<TokenQueue>(
          [this](const TokenBatch& batch, int64_t) { return classifier_.parts().logits(batch); },
          std::ssize(classifier.labels()), options)) {
  classifier.parts().needs(ClassifierTask::texts, "labels of texts");
}
ClassifyQueue::~ClassifyQueue() = default;

uint64_t ClassifyQueue::submit(const std::vector<TextInput>& texts, const ClassifyOptions& options,
                               Done done) {
  const FloatMode mode;
  if (queue_->full()) return 0;
  const Classifier::Parts& parts = classifier_.parts();
  std::vector<TokenizedText> tokens = read_inputs(parts, texts, options);
  auto finish = [&parts, options, tokens, done = std::move(done)](const std::vector<float>& rows,
                                                                  const Error* error) {
    if (error != nullptr) return done(nullptr, error);
    Classifications result;
    try {
      const Tensor logits = tensor_of(rows, {std::ssize(tokens), std::ssize(parts.labels)});
      result = classifications_of(parts, tokens, logits, options);
    } catch (const Error& wrong) {
      return done(nullptr, &wrong);
    }
    done(&result, nullptr);
  };
  return queue_->add(std::move(tokens), 0, std::move(finish));
}

void ClassifyQueue::cancel(uint64_t request) { queue_->cancel(request); }
QueueStatus ClassifyQueue::status() const { return queue_->status(); }

}  // namespace fovea::infer
