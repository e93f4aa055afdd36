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

namespace fovea::text {

// The difference between the lowest score and that of an unknown character; kUnkPenalty of
// sentencepiece.
constexpr double kUnknownPenalty = 10;

struct UnigramOptions {
  // The score of a piece into which no text is split. An unknown part of a text that equals such a
  // piece becomes its token.
  static constexpr double uncut = -std::numeric_limits<double>::infinity();

  std::vector<std::string> texts = {};  // by id; empty texts are ignored
  std::vector<double> scores = {};      // logarithms of probabilities, one per text
  std::optional<int32_t> unk_id = {};
  bool byte_fallback = false;  // an unknown character becomes "<0x..>" tokens if all of them exist
  // Pieces without an id and their scores: a text may be split into them, and each becomes the
  // unknown token.
  std::vector<std::pair<std::string, double>> unlisted = {};
  SpecialIds special = {};
};

// Finds the segmentation with the highest total score (https://arxiv.org/abs/1804.10959), from left
// to right; if scores are equal, the one with the longest last piece. Adjacent unknown characters
// become one token. encode() throws BadFile if there is an unknown character but no unknown token.
struct UnigramModel {
  explicit UnigramModel(UnigramOptions options);
  void encode(std::string_view stretch, std::vector<Piece>& out, bool parsed = false) const;

 private:
  UnigramModel(size_t listed, UnigramOptions all);

  struct Step {  // the best path to a position in the text
    double score;
    uint32_t begin;  // start of the path's last piece; kNone until a path is found
    int32_t id;
  };
  static constexpr uint32_t kNone = UINT32_MAX;

  void find_path(std::string_view stretch, Step* steps, bool parsed) const;
  void unknown(std::string_view stretch, Piece piece, std::vector<Piece>& out, bool parsed) const;

  PieceAutomaton pieces_;
  std::vector<double> scores_;
  double unk_score_;
  int32_t unk_id_;  // -1 if there is none
  int32_t listed_;  // ids from this one on belong to unlisted pieces
  bool byte_fallback_;
  std::array<int32_t, 256> byte_ids_;
  SpecialIds special_;
};

}  // namespace fovea::text
