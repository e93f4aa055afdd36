#pragma once

// The vocabulary of a GGUF file (its keys tokenizer.*) as tokenizer.json and tokenizer_config.json,
// and back, so that one reader remains.

#include "base/gguf.h"
#include "tokenizer/state.h"

namespace fovea {

// The whole tokenizer.json. Where a file has this key, fovea reads it instead of what llama.cpp
// does: the same tokenizer comes back.
constexpr const char* kWholeTokenizer = "tokenizer.huggingface.json";

// Whether the file has a vocabulary; a file for measurements has none.
bool has_tokenizer(const Gguf& file);

// tokenizer.huggingface.json where it is there, else made of the kinds llama (SentencePiece's BPE),
// gpt2 (BPE of bytes), t5 (unigram) and bert (WordPiece). BadFile, naming the key, for what does
// not hold together; Unsupported for another kind or way of splitting.
TokenizerFiles tokenizer_files(const Gguf& file);

// What llama.cpp reads, as far as it has a form for the tokenizer; no vocabulary where it has none.
// `vocabulary` is the number of the model's embeddings: tokens that are not there are made up,
// since llama.cpp wants one for each.
void write_tokenizer(GgufMetadata& metadata, const TokenizerFiles& files, int64_t vocabulary);

}  // namespace fovea
