#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace fovea::text {

// The fields of a SentencePiece .model that affect tokenization. The file is a protocol buffer:
// https://github.com/google/sentencepiece/blob/master/src/sentencepiece_model.proto
struct SentencePieceFile {
  enum class Type { normal = 1, unknown = 2, control = 3, user_defined = 4, unused = 5, byte = 6 };
  enum class Kind { unigram = 1, bpe = 2, word = 3, character = 4 };
  struct Entry {
    std::string text;
    float score = 0;
    Type type = Type::normal;
  };

  std::vector<Entry> pieces;  // by id
  Kind kind = Kind::unigram;
  bool byte_fallback = false;
  int32_t unk_id = 0;
  int32_t bos_id = 1;  // negative: none
  std::string unk_piece = "<unk>", bos_piece = "<s>", eos_piece = "</s>";
  std::string charsmap;  // bytes of the compiled normalisation rules
  bool add_dummy_prefix = true;
  bool remove_extra_whitespaces = true;
  bool space_is_suffix = false;  // treat_whitespace_as_suffix: the prefix follows the text
  bool of_gguf = false;          // to be read as by llama.cpp, which splits at symbols first
  // Of an encoder's GGUF file: a token after the end of the first text of a pair ("" = none); the
  // second text then has no start token.
  std::optional<std::string> separator;
};

// Parses a .model file. Throws BadFile, naming the byte, if the data is damaged, and Unsupported if
// a field that is not a setting of training has a value that fovea does not apply.
SentencePieceFile parse_sentencepiece(std::string_view bytes, const std::string& path);

// Returns the text of the equivalent tokenizer.json; `config` is the text of tokenizer_config.json.
std::string tokenizer_json_from_sentencepiece(SentencePieceFile model, const std::string& path,
                                              std::string_view config,
                                              const std::string& config_path);

}  // namespace fovea::text
