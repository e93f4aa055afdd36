#pragma once

#include "tokenizer/formats/sentencepiece.h"
#include "tokenizer/state/file.h"

namespace fovea::text {

// Returns the compiled normalisation rules as a normalizer.
nlohmann::ordered_json precompiled(const SentencePieceFile& source);

// Adds the normalizer, pre_tokenizer and decoder that handle spaces for a Unigram model. `prefix`:
// whether to insert a space before the text.
void add_spaces(const SentencePieceFile& source, bool prefix, TokenizerFile& file);

}  // namespace fovea::text
