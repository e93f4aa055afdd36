#pragma once

#include <array>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tokenizer/models/pair_table.h"
#include "tokenizer/models/piece_table.h"
#include "tokenizer/models/token_model.h"

namespace fovea::text {

struct BpeOptions {
  std::vector<std::string> texts = {};                           // by id
  std::vector<std::pair<std::string, std::string>> merges = {};  // in the order of their ranks
  bool bytes = false;    // whether symbols are bytes; if not, they are UTF-8 characters
  std::string unk = {};  // token of unknown characters; empty: they are omitted
  std::string continuing_subword_prefix = {};
  std::string end_of_word_suffix = {};
  bool fuse_unk = false;       // adjacent unknown characters become one token
  bool byte_fallback = false;  // an unknown character becomes "<0x..>" pieces if all of them exist
  bool ignore_merges = false;  // a stretch that is a token is not split
  SpecialIds special = {};
  std::string name = "tokenizer";  // name of the file, for errors
};

// Repeatedly merges the adjacent pair of the lowest rank, the leftmost one first, until no pair can
// be merged (https://arxiv.org/abs/1508.07909). The time is O(n log n) in the length of a stretch.
struct BpeModel {
  // Throws BadFile if a part or the result of a merge is not in the vocabulary, or if the second
  // part lacks the prefix.
  explicit BpeModel(BpeOptions options);
  void encode(std::string_view stretch, std::vector<Piece>& out, bool parsed = false) const;

 private:
  // The state of splitting a stretch into symbols, before any merge.
  struct Splitter;

  void read_merges(const std::vector<std::pair<std::string, std::string>>& merges,
                   const std::string& name);
  bool split_bytes(std::string_view stretch, std::vector<Piece>& out) const;
  void split(std::string_view stretch, std::vector<Piece>& out) const;
  int32_t symbol(std::string_view character, bool first, bool last) const;
  size_t merge_few(Piece* pieces, size_t count) const;
  void merge_many(std::vector<Piece>& pieces, size_t first) const;

  PieceTable table_;
  PairTable pairs_;
  std::array<int32_t, 256> symbols_;  // ids by byte (ASCII only, if symbols are characters)
  std::array<int32_t, 256> byte_ids_;
  std::string prefix_, suffix_;
  int32_t unk_id_;
  bool bytes_, fuse_unk_, byte_fallback_, ignore_merges_;
  SpecialIds special_;
};

}  // namespace fovea::text
