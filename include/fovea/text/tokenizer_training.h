#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "fovea/core/options.h"

namespace fovea::text {

enum class TokenizerKind {
  character,  // one token per character
  bpe,        // byte-pair encoding, as in Hugging Face's BpeTrainer
  wordpiece,  // as in Hugging Face's WordPieceTrainer
  unigram     // as in sentencepiece
};

struct TokenizerTraining {
  TokenizerKind kind = TokenizerKind::bpe;
  int64_t vocabulary = 8000;  // maximum tokens, including special tokens; 0 = all (character only)
  // bpe: start from the 256 bytes, so that every text can be encoded. If false, start from the
  // characters of the text.
  bool bytes = true;
  bool lowercase = false;     // wordpiece: convert to lower case and remove accents
  int64_t min_frequency = 0;  // bpe, wordpiece: minimum frequency of a merged pair
  int64_t alphabet = 0;       // bpe, wordpiece: keep only the most frequent characters; 0 = all
  // Add "<|endoftext|>" as the end-of-sequence token; for wordpiece it is always "[SEP]".
  bool end_of_text = true;
  // bpe, wordpiece, unigram: additional special tokens; they get the first ids, in this order.
  std::vector<std::string> special_tokens = {};
  int64_t context = 0;  // model_max_length of the written files; 0 = no limit
  // Memory limit in bytes for the table of distinct words and the data derived from it. If they
  // exceed it, the rarest words are dropped.
  uint64_t memory = uint64_t{2} << 30;
};
void visit(TokenizerTraining& training, OptionVisitor& visitor);  // fovea/core/options.h

}  // namespace fovea::text
