#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string_view>

#include "fovea/train_tokenizer.h"
#include "tokenizer/training/word_counter.h"

namespace fovea {

// Trains BPE, WordPiece and Unigram on a text that arrives in parts.
class TokenizerTrainer {
 public:
  explicit TokenizerTrainer(const TokenizerTraining& options);
  ~TokenizerTrainer();

  void add(std::string_view text);  // valid UTF-8
  void end_document();              // the text that follows is another line

  // Returns empty if `progress`, which receives the fraction done, returned false.
  std::optional<Tokenizer> train(const std::function<bool(double)>& progress = nullptr);

  int64_t words() const { return words_; }  // distinct words; known after training
  int64_t forgotten() const { return counter_.forgotten(); }

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

}  // namespace fovea
