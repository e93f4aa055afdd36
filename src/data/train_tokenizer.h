#pragma once

#include <cstdint>
#include <functional>
#include <optional>

#include "data/corpus.h"
#include "fovea/train_tokenizer.h"

namespace fovea {

// train_tokenizer for a corpus that is open already.
std::optional<TrainedTokenizer> train_tokenizer(
    Corpus& corpus, const TokenizerTraining& options,
    const std::function<bool(const TokenizerTrainingProgress&)>& progress = nullptr);

// A token for each character of the corpus, at most `vocabulary` tokens (0 = all), and
// "<|endoftext|>" if the corpus has documents to keep apart. `context` becomes the model_max_length
// of the files (0 = no limit).
Tokenizer train_character_tokenizer(Corpus& corpus, int64_t vocabulary = 0, int64_t context = 0);

}  // namespace fovea
