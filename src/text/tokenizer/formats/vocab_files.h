#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace fovea::text {

// These functions convert vocabularies of older formats to the tokenizer.json that Hugging Face's
// converters would write, so that there is only one reader. `config` is the text of
// tokenizer_config.json; it may be empty. The paths are for error messages. The functions throw
// BadFile if a file is damaged, Unsupported if fovea does not support the tokenizer's class or
// kind.

// Returns whether a folder has the files of a tokenizer: a tokenizer.json, or one of these formats.
bool has_vocabulary(const std::string& folder);

// Converts the vocab.txt of WordPiece, which has one token per line. Uses the settings
// do_lower_case, tokenize_chinese_chars and strip_accents of the config, and its special tokens.
std::string tokenizer_json_from_vocab_txt(std::string_view vocab_txt, const std::string& path,
                                          std::string_view config, const std::string& config_path);

// Converts the vocab.json and merges.txt of byte-level BPE. The config's tokenizer_class determines
// the parts around the model.
std::string tokenizer_json_from_merges(std::string_view vocab_json, const std::string& vocab_path,
                                       std::string_view merges_txt, const std::string& merges_path,
                                       std::string_view config, const std::string& config_path);

// Returns the tokens of a vocab.json, by id.
std::vector<std::string> texts_of_vocabulary(std::string_view vocab_json, const std::string& path);

// Return the vocab.json of a translation model that has a YAML vocabulary of lines "token: id", or
// the pieces of a SentencePiece model, with their ids; both with "<pad>" as the last token.
std::string vocabulary_of_yaml(std::string_view yaml, const std::string& path);
std::string vocabulary_of_pieces(std::string_view model, const std::string& path);

// Converts source.spm or target.spm (`model`) and the vocab.json with the ids of its pieces. A
// translation model has one SentencePiece model per language and usually one vocabulary for both.
std::string tokenizer_json_from_translation(std::string_view model, const std::string& path,
                                            std::string_view vocab_json,
                                            const std::string& vocab_path, std::string_view config,
                                            const std::string& config_path);

// Converts the sentencepiece.bpe.model (`model`) and the vocab.json of M2M-100, whose tokens of
// languages, such as "__en__", follow the vocabulary.
std::string tokenizer_json_of_languages(std::string_view model, const std::string& path,
                                        std::string_view vocab_json, const std::string& vocab_path,
                                        std::string_view config, const std::string& config_path);

// Converts a SentencePiece .model (protocol buffer) of kind unigram or bpe.
std::string tokenizer_json_from_sentencepiece(std::string_view model, const std::string& path,
                                              std::string_view config,
                                              const std::string& config_path);

}  // namespace fovea::text
