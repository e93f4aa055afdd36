#pragma once

#include <array>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tokenizer/models/piece_automaton.h"
#include "tokenizer/models/token_model.h"

namespace fovea {

// How far below the lowest score that of an unknown character is; kUnkPenalty of sentencepiece.
constexpr double kUnknownPenalty = 10;

struct UnigramOptions {
  // A text is not cut into a piece of this score: an unknown part may have its text.
  static constexpr double uncut = -std::numeric_limits<double>::infinity();

  std::vector<std::string> texts = {};  // by id; an empty one is no piece
  std::vector<double> scores = {};      // logarithms of probabilities, as many as texts
  std::optional<int32_t> unk_id = {};
  bool byte_fallback = false;  // an unknown character becomes "<0x..>" tokens where all are there
  // Pieces without an id: a text is cut into them too, and each becomes the unknown token.
  std::vector<std::pair<std::string, double>> unlisted = {};
  SpecialIds special = {};
};

// The segmentation of the highest total score (https://arxiv.org/abs/1804.10959), found from left
// to right; of equal ones the first found, which is the one whose last piece is longest. Unknown
// characters side by side become one token. BadFile where there is no unknown token for one.
struct UnigramModel {
  explicit UnigramModel(UnigramOptions options);
  void encode(std::string_view stretch, std::vector<Piece>& out, bool parsed = false) const;

 private:
  UnigramModel(size_t listed, UnigramOptions all);

  struct Step {  // the best way to a place in the text
    double score;
    uint32_t begin;  // of its last piece; kNone until a way is found
    int32_t id;
  };
  static constexpr uint32_t kNone = UINT32_MAX;

  void find_path(std::string_view stretch, Step* steps, bool parsed) const;
  void unknown(std::string_view stretch, Piece piece, std::vector<Piece>& out, bool parsed) const;

  PieceAutomaton pieces_;
  std::vector<double> scores_;
  double unk_score_;
  int32_t unk_id_;  // absent = -1
  int32_t listed_;  // ids from here on are of pieces that are not listed
  bool byte_fallback_;
  std::array<int32_t, 256> byte_ids_;
  SpecialIds special_;
};

}  // namespace fovea
