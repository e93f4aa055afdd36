#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "data/corpus.h"
#include "fovea/train_tokenizer.h"

namespace fovea {

// train_tokenizer for a corpus that is open already.
std::optional<TrainedTokenizer> train_tokenizer(
    Corpus& corpus, const TokenizerTraining& options,
    const std::function<bool(const TokenizerTrainingProgress&)>& progress = nullptr);

// Whether a choice of tokenizer means one that is made from the text: "char", "bpe", "bpe:8000" and
// the like. Then, the vocabulary behind its colon.
bool is_trained_choice(const std::string& choice);
int64_t vocabulary_in(const std::string& choice);

// What TrainOptions::tokenizer asks for, for models trained on this corpus: "char", "bpe:8000",
// "wordpiece:8000" or "unigram:8000", made from its text, or a folder or file to open. A new one
// has "<|endoftext|>" if the corpus has documents to keep apart. `max_characters` is the vocabulary
// for "char" (0 = all); `context` becomes the model_max_length of the files (0 = no limit).
Tokenizer make_tokenizer(Corpus& corpus, const std::string& choice, int64_t max_characters = 0,
                         int64_t context = 0);

// A token for each character of the corpus: make_tokenizer's "char".
Tokenizer train_character_tokenizer(Corpus& corpus, int64_t vocabulary = 0, int64_t context = 0);

}  // namespace fovea
