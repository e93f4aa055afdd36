#pragma once

#include "tokenizer/formats/sentencepiece.h"
#include "tokenizer/state/file.h"

namespace fovea::text {

// Returns all pairs of pieces that together form a piece, by descending score of that piece; with
// `only_normal`, no pair forms a piece of another type.
nlohmann::ordered_json merges_of(const std::vector<SentencePieceFile::Entry>& pieces,
                                 bool only_normal);

// Returns the compiled normalisation rules as a normalizer.
nlohmann::ordered_json precompiled(const SentencePieceFile& source);

// Adds the normalizer, pre_tokenizer and decoder that handle spaces for a Unigram model. `prefix`:
// whether to insert a space before the text.
void add_spaces(const SentencePieceFile& source, bool prefix, TokenizerFile& file);

}  // namespace fovea::text
