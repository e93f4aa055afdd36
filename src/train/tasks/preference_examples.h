#pragma once

#include <optional>
#include <vector>

#include "data/weighted_order.h"
#include "loop/examples.h"
#include "tasks/packed_examples.h"

namespace fovea::train {

// Preferences as texts. Record i has the texts 2 i and 2 i + 1: a prompt with the chosen and with
// the rejected answer; or a judged answer, and the same prompt with the answer of another record.
// Labels: see LabelledSequences; a reward model reads none.
struct PreferenceTexts {
  LabelledSequences texts;
  Sequences types;  // of each token, if the model has types
  // Of an encoder-decoder, the prompt of each text, which the encoder reads; else empty.
  Sequences sources;
  std::vector<double> values;         // of each record: the margin, or 1 (desirable) or -1
  std::vector<WeightedGroup> groups;  // the records for training, by file
  int64_t records() const { return std::ssize(values); }
};

struct PreferenceBatching {
  bool one_per_row = false;  // each text has a row, filled up with padding; else rows are shared
  bool judged = false;       // batches have only the first text of each record
  bool decodes = true;       // the model is a decoder
  int64_t length = 0;        // most tokens of a row
  int64_t batch = 1;         // records in one forward pass
  uint64_t seed = 0;
  int32_t padding = 0;
};

// Batches of preferences. An epoch visits the records in a random order, each as often as the
// weight of its file says. Both texts of a record are in the same batch.
class PreferenceExamples : public Examples {
 public:
  // The last `held_out` records are those for validation.
  PreferenceExamples(PreferenceTexts texts, int64_t held_out, const PreferenceBatching& options);

  Batch training(int64_t pass) const override { return of(records_of(pass)); }
  double passes_per_epoch() const override;
  int64_t validation_batches() const override;
  Batch validation(int64_t n) const override;

  std::vector<int64_t> records_of(int64_t pass) const;  // the records of a pass in training
  std::vector<int64_t> records_held_out() const;
  Batch of(const std::vector<int64_t>& records) const;
  // Returns the second texts of the records of a batch of judged answers.
  Batch mismatched(const Batch& judged) const;

  // The records of the texts of a batch, each once, and their values: f64 [n].
  std::vector<int64_t> records_in(const Batch& batch) const;
  Tensor values_of(const Batch& batch) const;
  uint64_t key(int64_t text) const;  // a hash of the tokens and labels of a text

 private:
  Part part_of(int64_t begin, int64_t end) const;  // of these records, each once
  Batch of_texts(const std::vector<int64_t>& numbers) const;
  Batch shared_rows(const std::vector<int64_t>& numbers) const;
  Batch padded_rows(const std::vector<int64_t>& numbers) const;
  Batch translated_rows(const std::vector<int64_t>& numbers) const;
  int64_t predictions(int64_t text) const;

  PreferenceTexts all_;
  int64_t trained_;                     // number of records for training
  std::optional<WeightedItems> order_;  // unset without records for training
  PreferenceBatching options_;
};

}  // namespace fovea::train
