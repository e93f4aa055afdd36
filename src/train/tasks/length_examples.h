#pragma once

#include <optional>
#include <utility>

#include "data/length_batches.h"
#include "loop/examples.h"

namespace fovea::train {

// Samples of different lengths, in batches of similar length. Data holds the tokens of all samples.
template <class Data>
class LengthExamples : public Examples {
 public:
  Batch training(int64_t pass) const override { return of(training_, batches_(pass)); }
  double passes_per_epoch() const override { return static_cast<double>(batches_.batches()); }
  int64_t validation_batches() const override {
    return validation_batches_ ? validation_batches_->batches() : 0;
  }
  Batch validation(int64_t n) const override {
    return of(validation_, validation_batches_->in_order(n));
  }

 protected:
  // `cut` divides a part into batches; `count` returns its Part.
  template <class Cut>
  LengthExamples(Data training, Data validation, const Cut& cut, Part (*count)(const Data&))
      : training_(std::move(training)),
        validation_(std::move(validation)),
        batches_(cut(training_)) {
    learnt = count(training_);
    held_out = count(validation_);
    if (held_out.sequences > 0) validation_batches_ = cut(validation_);
  }

 private:
  // Returns the batch of these samples.
  virtual Batch of(const Data& data, const std::vector<int64_t>& samples) const = 0;

  Data training_, validation_;
  LengthBatches batches_;
  std::optional<LengthBatches> validation_batches_;
};

}  // namespace fovea::train
