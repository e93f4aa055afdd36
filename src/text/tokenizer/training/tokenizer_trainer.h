#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string_view>

#include "fovea/text/tokenizer.h"
#include "fovea/text/tokenizer_training.h"
#include "tokenizer/training/word_counter.h"

namespace fovea::text {

constexpr int64_t kMostTokens = int64_t{1} << 24;  // so that ids and their texts fit into memory

// Trains a BPE, WordPiece or Unigram tokenizer on a text that arrives in parts.
class TokenizerTrainer {
 public:
  explicit TokenizerTrainer(const TokenizerTraining& options);
  ~TokenizerTrainer();

  void add(std::string_view text);  // must be valid UTF-8
  void end_document();              // the following text begins a new line

  // Returns an empty result if `progress`, which receives the fraction done, returned false.
  std::optional<Tokenizer> train(const std::function<bool(double)>& progress = nullptr);

  int64_t words() const { return words_; }  // number of distinct words, after training
  int64_t forgotten() const { return counter_.forgotten(); }  // see WordCounter

 private:
  struct Recipe;

  std::optional<Tokenizer> merged(const WordCounts& words,
                                  const std::function<bool(double)>& progress);
  std::optional<Tokenizer> unigram(const WordCounts& words,
                                   const std::function<bool(double)>& progress);

  const TokenizerTraining options_;
  std::unique_ptr<Recipe> recipe_;
  WordCounter counter_;
  int64_t words_ = 0;
};

}  // namespace fovea::text
