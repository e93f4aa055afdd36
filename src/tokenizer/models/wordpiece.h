#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "tokenizer/models/piece_automaton.h"
#include "tokenizer/models/token_model.h"

namespace fovea {

struct WordPieceOptions {
  std::vector<std::string> texts = {};  // by id
  std::string unk = "[UNK]";
  std::string continuing_subword_prefix = "##";
  size_t max_input_chars_per_word = 100;
  SpecialIds special = {};
};

// Takes the longest piece again and again. A word where this leads nowhere, or of more characters
// than the limit, is the unknown token as a whole (https://arxiv.org/abs/1609.08144). BadFile where
// the vocabulary lacks that one.
struct WordPieceModel {
  explicit WordPieceModel(WordPieceOptions options);
  void encode(std::string_view stretch, std::vector<Piece>& out, bool parsed = false) const;

 private:
  void unknown(std::string_view stretch, std::vector<Piece>& out) const;

  Piece first_piece(std::string_view stretch, bool parsed) const;

  PieceTrie trie_;
  PieceAutomaton continuing_;  // the pieces that have the prefix, without it and read backwards
  int32_t unk_id_;
  std::string unk_;
  size_t max_characters_;
  SpecialIds special_;
};

}  // namespace fovea
