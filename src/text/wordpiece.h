#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "text/piece_trie.h"
#include "text/token_model.h"

namespace fovea {

struct WordPieceOptions {
  std::vector<std::string> texts = {};  // by id
  std::string unk = "[UNK]";
  std::string continuing_subword_prefix = "##";
  size_t max_input_chars_per_word = 100;
};

// Takes the longest piece again and again. A word where this leads nowhere, or of more characters
// than the limit, is the unknown token as a whole (https://arxiv.org/abs/1609.08144). BadFile where
// the vocabulary lacks that one.
struct WordPieceModel {
  explicit WordPieceModel(WordPieceOptions options);
  void encode(std::string_view stretch, std::vector<Piece>& out) const;

 private:
  void unknown(std::string_view stretch, std::vector<Piece>& out) const;

  PieceTrie trie_;
  uint32_t continuing_;  // the node that the prefix leads to
  int32_t unk_id_;
  std::string unk_;
  size_t max_characters_;
};

}  // namespace fovea
