#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "text/piece_trie.h"
#include "text/token_model.h"

namespace fovea {

struct UnigramOptions {
  std::vector<std::string> texts = {};  // by id
  std::vector<double> scores = {};      // logarithms of probabilities, as many as texts
  std::optional<int32_t> unk_id = {};
  bool byte_fallback = false;  // an unknown character becomes "<0x..>" tokens where all are there
};

// The segmentation of the highest total score (https://arxiv.org/abs/1804.10959), found from left
// to right; of equal ones the first found, which is the one whose last piece is longest. Unknown
// characters side by side become one token. BadFile where there is no unknown token for one.
struct UnigramModel {
  explicit UnigramModel(UnigramOptions options);
  void encode(std::string_view stretch, std::vector<Piece>& out) const;

 private:
  struct Step {  // the best way to a place in the text
    double score;
    uint32_t begin;  // of its last piece; kNone until a way is found
    int32_t id;
  };
  static constexpr uint32_t kNone = UINT32_MAX;

  void find_path(std::string_view stretch, Step* steps) const;
  void unknown(std::string_view stretch, Piece piece, std::vector<Piece>& out) const;

  PieceTrie trie_;
  std::vector<double> scores_;
  double unk_score_;
  int32_t unk_id_;  // absent = -1
  bool byte_fallback_;
  std::array<int32_t, 256> byte_ids_;
};

}  // namespace fovea
