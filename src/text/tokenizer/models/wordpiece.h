#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "tokenizer/models/piece_automaton.h"
#include "tokenizer/models/token_model.h"

namespace fovea::text {

struct WordPieceOptions {
  std::vector<std::string> texts = {};  // by id
  std::string unk = "[UNK]";
  std::string continuing_subword_prefix = "##";
  size_t max_input_chars_per_word = 100;
  SpecialIds special = {};
};

// WordPiece (https://arxiv.org/abs/1609.08144): repeatedly takes the longest matching
// piece. If none matches, or if the word has too many characters, the complete word becomes the
// unknown token. encode() throws BadFile if the vocabulary lacks that token.
struct WordPieceModel {
  explicit WordPieceModel(WordPieceOptions options);
  void encode(std::string_view stretch, std::vector<Piece>& out, bool parsed = false) const;

 private:
  void unknown(std::string_view stretch, std::vector<Piece>& out) const;

  Piece first_piece(std::string_view stretch, bool parsed) const;

  PieceTrie trie_;
  PieceAutomaton continuing_;  // the continuation pieces, without the prefix and reversed
  int32_t unk_id_;
  std::string unk_;
  size_t max_characters_;
  SpecialIds special_;
};

}  // namespace fovea::text
