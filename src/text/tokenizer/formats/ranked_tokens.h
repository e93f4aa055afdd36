#pragma once

#include <string>
#include <vector>

#include "base/ggml_file.h"
#include "tokenizer/state/state.h"

namespace fovea::text {

// The tokenizer of a list of tokens of byte-level BPE without its merges, which are in the order of
// their ids: bytes are written as the printable characters that represent them, and special tokens
// as <|NAME|>. A merge makes a token of the two parts that the merges before it leave.
TokenizerFiles tokenizer_of_ranks(const std::vector<std::string>& tokens);

// Returns the tokens of a file of ggml, written as above. Files of published models leave out the
// special tokens, which follow from the size of the vocabulary. Throws BadFile if they do not.
std::vector<std::string> ggml_tokens(const GgmlFile& file);
// Returns how many of the tokens the file of a published model has: those that are not special.
size_t plain_ggml_tokens(size_t vocabulary);

// Returns whether a token is written as a special one, and whether it is that of a time.
bool is_special_name(std::string_view token);
bool is_time_name(std::string_view token);

// Returns the path of a vocabulary of CTranslate2 in a folder: PREFIXvocabulary.json, or
// PREFIXvocabulary.txt, which releases before 3.16 wrote, if only that exists.
std::string token_list_path(const std::string& folder, const std::string& prefix = "");
// Returns the tokens of such a file: a JSON list, or one in each line of a text. Throws BadFile if
// it is no list of strings, or not UTF-8.
std::vector<std::string> token_list(const std::string& path);
// Returns the vocab.json of a translation model from such a list, which lacks the token of padding:
// it gets the next id.
std::string vocabulary_of_list(const std::string& path);

}  // namespace fovea::text
