#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "fovea/tokenizer.h"

namespace fovea {

enum class TokenizerKind {
  character,  // one token per character
  bpe,        // byte-pair encoding, as in Hugging Face's BpeTrainer
  wordpiece,  // as in Hugging Face's WordPieceTrainer
  unigram     // as in sentencepiece
};

struct TokenizerTraining {
  TokenizerKind kind = TokenizerKind::bpe;
  int64_t vocabulary = 8000;  // maximum tokens, including special tokens; character: 0 = all
  // bpe: start from the 256 bytes, so that every text can be encoded. If false, start from the
  // characters of the text.
  bool bytes = true;
  bool lowercase = false;     // wordpiece: ignore case and accents
  int64_t min_frequency = 0;  // bpe, wordpiece: minimum frequency of a merged pair
  int64_t alphabet = 0;       // bpe, wordpiece: keep only the most frequent characters; 0 = all
  bool end_of_text = true;  // add "<|endoftext|>" as the end-of-sequence token (wordpiece: "[SEP]")
  // additional special tokens; they get the first ids, in this order
  std::vector<std::string> special_tokens = {};
  int64_t context = 0;  // model_max_length of the written files; 0 = no limit
  // Memory limit in bytes for the table of distinct words and the data derived from it. If a text
  // exceeds it, the rarest words are dropped.
  uint64_t memory = uint64_t{2} << 30;
};

struct TokenizerTrainingProgress {
  enum class Stage { reading, training } stage;
  double fraction;  // completed part of the stage
};

struct TrainedTokenizer {
  Tokenizer tokenizer;
  int64_t bytes;  // bytes of text read
  int64_t words;  // distinct words that were counted; 0 for character
  // words with at most this many occurrences may have been dropped; 0 = none were
  int64_t forgotten;
  // Special-token names that occur in the text, with counts: "<|im_start|> (12 times)". They are
  // read as plain characters. Empty = none.
  std::string special_names = {};
};

// Trains a tokenizer on text files, JSON lines and directories of both. Uses all threads and
// bounded memory; the result does not depend on the number of threads. Returns nothing if
// `progress` returned false. Throws InvalidArgument if the vocabulary is too small for the
// characters, BadFile if a file cannot be read.
std::optional<TrainedTokenizer> train_tokenizer(
    const std::vector<std::filesystem::path>& data, const TokenizerTraining& options,
    const std::function<bool(const TokenizerTrainingProgress&)>& progress = nullptr);

}  // namespace fovea
