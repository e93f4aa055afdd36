#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "data/corpus.h"
#include "fovea/train_tokenizer.h"

namespace fovea {

// train_tokenizer for an open corpus.
std::optional<TrainedTokenizer> train_tokenizer(
    Corpus& corpus, const TokenizerTraining& options,
    const std::function<bool(const TokenizerTrainingProgress&)>& progress = nullptr);

// Whether a choice of tokenizer means training on the text: "char", "bpe", "bpe:8000" and similar.
// The next function returns the vocabulary size after the colon.
bool is_trained_choice(const std::string& choice);
int64_t vocabulary_in(const std::string& choice);

// The tokenizer for TrainOptions::tokenizer, for models trained on this corpus: "char", "bpe:8000",
// "wordpiece:8000" or "unigram:8000" is trained on its text; anything else is a folder or file to
// open. A trained tokenizer has "<|endoftext|>" if the corpus has several documents.
// `max_characters` is the vocabulary for "char" (0 = all); `context` becomes the model_max_length
// of the files (0 = no limit).
Tokenizer make_tokenizer(Corpus& corpus, const std::string& choice, int64_t max_characters = 0,
                         int64_t context = 0);

// One token per character of the corpus: make_tokenizer's "char".
Tokenizer train_character_tokenizer(Corpus& corpus, int64_t vocabulary = 0, int64_t context = 0);

}  // namespace fovea
