#pragma once

#include "tokenizer/file.h"
#include "tokenizer/formats/sentencepiece.h"

namespace fovea {

// The compiled normalisation rules as a normalizer.
nlohmann::ordered_json precompiled(const SentencePieceFile& source);

// How a Unigram model sees spaces: normalizer, pre_tokenizer and decoder. `prefix`: one is put
// before the text.
void add_spaces(const SentencePieceFile& source, bool prefix, TokenizerFile& file);

}  // namespace fovea
