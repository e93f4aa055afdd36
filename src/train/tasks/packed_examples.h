#pragma once

#include "data/packed_rows.h"
#include "loop/examples.h"
#include "tasks/chat_images.h"
#include "tasks/sequences.h"

namespace fovea::train {

// Texts as ids, with the label of each token: the next token if that is trained, else -1.
struct LabelledSequences {
  Sequences ids, labels;
  // For a model that reads images: those of each text.
  std::shared_ptr<const ChatImages> images = nullptr;
  std::vector<std::vector<TextImage>> images_of = {};
};

// Returns the batch of rows of texts, each of which begins at a multiple of PackedRows::kTile.
// `padding`: the token between and after the texts of a row.
Batch packed_batch(const LabelledSequences& texts, const std::vector<std::vector<int64_t>>& rows,
                   int64_t length, int32_t padding);

struct PackedOptions {
  int64_t length = 0;  // tokens of a row
  int64_t batch = 1;   // rows in one forward pass
  uint64_t seed = 0;
  int32_t padding = 0;  // the token between and after the texts of a row
};

// Texts for a decoder, several of which share a row without attending to one another. Each token
// has the logits of the text alone, bit by bit, in every row. The sums over tokens (the loss and
// the gradients of weights) are computed row by row, in the order of the rows, so their last bits
// depend on which texts share a row.
class PackedExamples : public Examples {
 public:
  // `groups`: the training texts of each file.
  PackedExamples(LabelledSequences training, LabelledSequences validation,
                 const std::vector<PackedRows::Group>& groups, const PackedOptions& options);

  Batch training(int64_t pass) const override;
  double passes_per_epoch() const override;
  int64_t validation_batches() const override;
  Batch validation(int64_t n) const override;

 private:
  Batch of(const LabelledSequences& texts, const std::vector<std::vector<int64_t>>& rows) const {
    Batch batch = packed_batch(texts, rows, options_.length, options_.padding);
    batch.units = std::ssize(rows);
    batch.equal_lengths = true;
    return batch;
  }

  LabelledSequences training_, validation_;
  PackedOptions options_;
  PackedRows rows_;
  std::vector<std::vector<int64_t>> validation_rows_;
};

}  // namespace fovea::train
