#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "data/corpus.h"
#include "fovea/train/train_tokenizer.h"

namespace fovea::train {

// Like train_tokenizer() in fovea/train/train_tokenizer.h, for an open corpus.
std::optional<TrainedTokenizer> train_tokenizer(
    Corpus& corpus, const text::TokenizerTraining& options,
    const std::function<bool(const TokenizerTrainingProgress&)>& progress = nullptr);

// Returns whether the choice requests a new tokenizer: "char", "bpe", "bpe:8000" and similar.
bool is_trained_choice(const std::string& choice);
int64_t vocabulary_in(const std::string& choice);  // the vocabulary size after the colon

// Trains or opens the tokenizer that TrainOptions::tokenizer requests: "char", "bpe:8000",
// "wordpiece:8000" or "unigram:8000" is trained on the corpus; anything else is a folder or file to
// open. A trained tokenizer has "<|endoftext|>" if the corpus has several files or JSON lines.
// `max_characters` is the maximum number of characters for "char" (0 = all); `context` becomes the
// model_max_length of the files (0 = no limit).
text::Tokenizer make_tokenizer(Corpus& corpus, const std::string& choice,
                               int64_t max_characters = 0, int64_t context = 0);

// Trains a tokenizer with one token per character, as make_tokenizer() does for "char".
text::Tokenizer train_character_tokenizer(Corpus& corpus, int64_t vocabulary = 0,
                                          int64_t context = 0);

}  // namespace fovea::train
