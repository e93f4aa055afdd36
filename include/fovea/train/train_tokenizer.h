#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "fovea/text/tokenizer.h"
#include "fovea/text/tokenizer_training.h"

namespace fovea::train {

struct TokenizerTrainingProgress {
  enum class Stage { reading, training } stage;
  double fraction;  // completed part of the stage
};

struct TrainedTokenizer {
  text::Tokenizer tokenizer;
  int64_t bytes;  // bytes of text read
  int64_t words;  // distinct words that were counted; 0 for character
  // Words with at most this number of occurrences may have been dropped; 0 = no word was dropped.
  int64_t forgotten;
  // Names of special tokens that occur in the text, with counts: "<|im_start|> (12 times)". The
  // text is read as plain characters. Empty = none.
  std::string special_names = {};
};

// Trains a tokenizer on text files, JSON lines and directories of both. Uses all threads and
// bounded memory; the result does not depend on the number of threads. Returns nothing if
// `progress` returned false. Throws InvalidArgument if an option is out of range or
// the vocabulary is too small for the characters and the special tokens, BadFile if a file cannot
// be read.
std::optional<TrainedTokenizer> train_tokenizer(
    const std::vector<std::filesystem::path>& data, const text::TokenizerTraining& options,
    const std::function<bool(const TokenizerTrainingProgress&)>& progress = nullptr);

}  // namespace fovea::train
