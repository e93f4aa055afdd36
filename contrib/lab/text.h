#pragma once

#include <memory>
#include <string>
#include <vector>

#include "data/token_store.h"
#include "losses/batch.h"

namespace fovea::lab {

// A text as tokens, for experiments on text; its last tenth is held out.
class Text {
 public:
  // `tokenizer` is a choice of TrainOptions::tokenizer.
  explicit Text(const std::vector<std::string>& paths, const std::string& tokenizer = "char");
  // Returns the same text with another tokenizer.
  Text with_tokenizer(const std::string& tokenizer) const { return Text(paths_, tokenizer); }

  int64_t vocabulary() const { return vocabulary_; }
  uint64_t hash() const { return store_->corpus_hash(); }
  const TokenSpan& training() const { return store_->training(); }
  const TokenSpan& held_out() const { return store_->validation(); }

  // Returns windows in a random order of the seed.   -> [rows, length]
  Batch training_batch(int64_t step, int64_t rows, int64_t length, uint64_t seed) const;
  // Returns at most `windows` windows, spread evenly over the held-out part, in batches of at most
  // `rows`.
  std::vector<Batch> held_out_batches(int64_t windows, int64_t rows, int64_t length) const;

 private:
  std::vector<std::string> paths_;
  std::unique_ptr<TokenStore> store_;
  int64_t vocabulary_ = 0;
};

}  // namespace fovea::lab
