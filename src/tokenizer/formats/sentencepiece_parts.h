#pragma once

#include "tokenizer/file.h"
#include "tokenizer/formats/sentencepiece.h"

namespace fovea {

// The compiled normalisation rules as a normalizer.
nlohmann::ordered_json precompiled(const SentencePieceFile& source);

// Adds the treatment of spaces of a Unigram model: normalizer, pre_tokenizer and decoder. `prefix`:
// insert a space before the text.
void add_spaces(const SentencePieceFile& source, bool prefix, TokenizerFile& file);

}  // namespace fovea
