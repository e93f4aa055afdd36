#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace fovea {

// Converts vocabularies of older formats to the tokenizer.json that Hugging Face's converters would
// write, so that there is only one reader. `config` is the text of tokenizer_config.json; it may be
// empty. The paths are for messages. Throws BadFile for damaged files.

// Whether a folder has a tokenizer's files, of any of these formats or tokenizer.json.
bool has_vocabulary(const std::string& folder);

// vocab.txt of WordPiece: one token per line. Uses the config's do_lower_case,
// tokenize_chinese_chars, strip_accents and special tokens.
std::string tokenizer_json_from_vocab_txt(std::string_view vocab_txt, const std::string& path,
                                          std::string_view config, const std::string& config_path);

// vocab.json and merges.txt of byte-level BPE. The config's tokenizer_class determines the parts
// around the model.
std::string tokenizer_json_from_merges(std::string_view vocab_json, const std::string& vocab_path,
                                       std::string_view merges_txt, const std::string& merges_path,
                                       std::string_view config, const std::string& config_path);

// The tokens of a vocab.json, by id.
std::vector<std::string> texts_of_vocabulary(std::string_view vocab_json, const std::string& path);

// source.spm or target.spm, and the vocabulary with the ids of its pieces: a translation model
// splits two languages with two SentencePiece models and numbers their pieces in one list.
std::string tokenizer_json_from_translation(std::string_view model, const std::string& path,
                                            std::string_view vocab_json,
                                            const std::string& vocab_path, std::string_view config,
                                            const std::string& config_path);

// A SentencePiece .model (protocol buffer) of the kinds unigram and bpe.
std::string tokenizer_json_from_sentencepiece(std::string_view model, const std::string& path,
                                              std::string_view config,
                                              const std::string& config_path);

}  // namespace fovea
