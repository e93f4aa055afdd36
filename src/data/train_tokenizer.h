#pragma once

#include <cstdint>

#include "data/corpus.h"
#include "fovea/tokenizer.h"

namespace fovea {

// A token for each character of the corpus, at most `vocabulary` tokens (0 = all), and
// "<|endoftext|>" if the corpus has documents to keep apart. `context` becomes the model_max_length
// of the files (0 = no limit).
Tokenizer train_character_tokenizer(Corpus& corpus, int64_t vocabulary = 0, int64_t context = 0);

}  // namespace fovea
