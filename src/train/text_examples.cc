#include <algorithm>

#include "train/examples.h"

namespace fovea {

TextExamples::TextExamples(const TokenSpan& training, const TokenSpan& validation, int64_t context,
                           int64_t batch, int64_t windows, uint64_t seed)
    : batches_(training, context, seed), context_(context), batch_(batch) {
  learnt = {0, training.count, training.count, training.bytes};
  held_out = {0, validation.count, validation.count, validation.bytes};
  if (validation.count > context)
    validation_.emplace(validation, context, windows > 0 ? windows : validation.count);
}

Batch TextExamples::of(int64_t rows) const {
  Batch batch;
  batch.target.ids = empty({rows, context_}, DType::i32);
  batch.labels = empty({rows, context_}, DType::i32);
  batch.asked = batch.tokens = rows * context_;
  return batch;
}

Batch TextExamples::training(int64_t pass) const {
  const Batch batch = of(batch_);
  batches_.fill(pass, batch_, batch.target.ids.data_as<int32_t>(), batch.labels.data_as<int32_t>());
  return batch;
}

double TextExamples::passes_per_epoch() const {
  return static_cast<double>(learnt.tokens) / static_cast<double>(batch_ * context_);
}

int64_t TextExamples::validation_batches() const {
  return validation_ ? (validation_->windows() + batch_ - 1) / batch_ : 0;
}

Batch TextExamples::validation(int64_t n) const {
  const int64_t first = n * batch_;
  const Batch batch = of(std::min(batch_, validation_->windows() - first));
  validation_->fill(first, batch.labels.dim(0), batch.target.ids.data_as<int32_t>(),
                    batch.labels.data_as<int32_t>());
  return batch;
}

}  // namespace fovea
