#pragma once

// Converts the vocabulary of a GGUF file (its keys tokenizer.*) to tokenizer.json and
// tokenizer_config.json, and back, so that there is only one reader.

#include "base/gguf.h"
#include "tokenizer/state/state.h"

namespace fovea::text {

// The key of a complete tokenizer.json. fovea reads this key instead of llama.cpp's keys if it
// exists, so that saved tokenizers are restored exactly.
constexpr const char* kWholeTokenizer = "tokenizer.huggingface.json";

// The keys of the default chat template, and of the names of others, each of which has the key
// kChatTemplate.NAME.
constexpr const char *kChatTemplate = "tokenizer.chat_template",
                     *kChatTemplates = "tokenizer.chat_templates";

// Returns whether the file has a vocabulary.
bool has_tokenizer(const Gguf& file);

// Returns the contents of tokenizer.huggingface.json if it exists; otherwise converts the kinds
// llama (SentencePiece's BPE), gpt2 (byte-level BPE), t5 (unigram) and bert (WordPiece). Throws
// BadFile, naming the key, if the file has no vocabulary or inconsistent data; throws Unsupported
// for another kind or an unknown pre-tokenizer.
TokenizerFiles tokenizer_files(const Gguf& file);

// Writes the keys that llama.cpp reads, with the kind no_vocab if llama.cpp does not support the
// tokenizer. `vocabulary` is the number of the model's token embeddings: ids without a token get
// placeholders, since llama.cpp requires a token per embedding. Throws Unsupported if the id of a
// token is not below `vocabulary`.
void write_tokenizer(GgufMetadata& metadata, const TokenizerFiles& files, int64_t vocabulary);

}  // namespace fovea::text
