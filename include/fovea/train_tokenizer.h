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
  character,  // a token for each character
  bpe,        // byte-pair encoding, as Hugging Face's BpeTrainer
  wordpiece,  // as Hugging Face's WordPieceTrainer
  unigram     // as sentencepiece
};

struct TokenizerTraining {
  TokenizerKind kind = TokenizerKind::bpe;
  int64_t vocabulary = 8000;  // tokens at most, special ones included; for characters 0 = all
  // Byte-pair encoding begins with the 256 bytes, so that nothing is unknown; otherwise with the
  // characters of the text.
  bool bytes = true;
  bool lowercase = false;     // WordPiece: ignore case and accents
  int64_t min_frequency = 0;  // BPE, WordPiece: of a pair that is merged
  int64_t alphabet = 0;       // BPE, WordPiece: keep the most frequent characters; 0 = all
  bool end_of_text = true;    // "<|endoftext|>", the end-of-sequence token (WordPiece: "[SEP]")
  std::vector<std::string> special_tokens = {};  // more of them; they come first, in this order
  int64_t context = 0;                           // model_max_length of the files; 0 = no limit
  // Bytes for the table of distinct words and what is made of it. Where a text has more of them,
  // those that were rare so far are forgotten.
  uint64_t memory = uint64_t{2} << 30;
};

struct TokenizerTrainingProgress {
  enum class Stage { reading, training } stage;
  double fraction;  // of the stage
};

struct TrainedTokenizer {
  Tokenizer tokenizer;
  int64_t bytes;      // of text
  int64_t words;      // distinct ones that were counted; 0 for characters
  int64_t forgotten;  // words of at most so many occurrences were left out at times; 0: none
  // Names of special tokens that the text holds, which are plain characters there, and how often:
  // "<|im_start|> (12 times)". Empty: none.
  std::string special_names = {};
};

// Trains a tokenizer on text files, JSON lines and folders of both (as fovea train reads them):
// with all threads, in bounded memory, with the same result for any number of threads. Nothing when
// `progress` answered false. InvalidArgument for a vocabulary too small for the characters; BadFile
// for text that cannot be read.
std::optional<TrainedTokenizer> train_tokenizer(
    const std::vector<std::filesystem::path>& data, const TokenizerTraining& options,
    const std::function<bool(const TokenizerTrainingProgress&)>& progress = nullptr);

}  // namespace fovea
