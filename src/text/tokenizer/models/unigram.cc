#include "tokenizer/models/unigram.h"

#include <algorithm>
#include <limits>

#include "base/error.h"
#include "tokenizer/models/byte_pieces.h"
#include "tokenizer/models/word_level.h"
#include "unicode/utf8.h"

namespace fovea::text {
namespace {

// Appends the unlisted pieces to the listed ones.
UnigramOptions joined(UnigramOptions options) {
  check(options.scores.size() == options.texts.size(),
        "scores: {} scores; expected {}, one per piece", options.scores.size(),
        options.texts.size());
  for (auto& [text, score] : options.unlisted) {
    options.texts.push_back(std::move(text));
    options.scores.push_back(score);
  }
  return options;
}

double lowest_score(const UnigramOptions& options) {
  double lowest = std::numeric_limits<double>::infinity();
  for (size_t id = 0; id < options.texts.size(); ++id) {
    if (options.texts[id].empty() || options.scores[id] == UnigramOptions::uncut) continue;
    lowest = std::min(lowest, options.scores[id]);
  }
  return lowest;
}

}  // namespace

// With braces, the size is evaluated before the move.
UnigramModel::UnigramModel(UnigramOptions options)
    : UnigramModel{options.texts.size(), joined(std::move(options))} {}

UnigramModel::UnigramModel(size_t listed, UnigramOptions options)
    : pieces_(options.texts),
      unk_score_(lowest_score(options) - kUnknownPenalty),
      unk_id_(options.unk_id.value_or(PieceTrie::absent)),
      listed_(static_cast<int32_t>(listed)),
      byte_fallback_(options.byte_fallback),
      byte_ids_(byte_piece_ids([&](std::string_view text) { return pieces_.trie().find(text); })),
      special_(std::move(options.special)) {
  scores_ = std::move(options.scores);
}

void UnigramModel::find_path(std::string_view stretch, Step* steps, bool parsed) const {
  const auto offer = [&](size_t begin, size_t end, int32_t id, double score) {
    Step& step = steps[end];
    if (step.begin == kNone || score > step.score) step = {score, static_cast<uint32_t>(begin), id};
  };
  uint32_t state = PieceAutomaton::root;
  for (size_t character = 0; character < stretch.size();) {
    const size_t end = character + utf8::first(stretch.substr(character)).bytes;
    for (size_t i = character; i < end; ++i) state = pieces_.step(state, stretch[i]);
    bool single = false;  // whether a piece covers exactly this character
    for (uint32_t piece = pieces_.longest(state); piece != PieceAutomaton::root;
         piece = pieces_.shorter(piece)) {
      const int32_t id = pieces_.id_at(piece);
      const double score = scores_[static_cast<size_t>(id)];
      if (score == UnigramOptions::uncut || special_.hides(id, parsed)) continue;
      const size_t begin = end - pieces_.length_of(id);
      offer(begin, end, id, steps[begin].score + score);
      single |= begin == character;
    }
    if (!single) {
      if (unk_id_ == PieceTrie::absent)
        fail_without_unknown(stretch.substr(character, end - character), "");
      offer(character, end, unk_id_, steps[character].score + unk_score_);
    }
    character = end;
  }
}

void UnigramModel::encode(std::string_view stretch, std::vector<Piece>& out, bool parsed) const {
  constexpr size_t kShort = 128;  // bytes; enough for nearly all words; takes 2 KB of stack
  std::array<Step, kShort + 1> few;
  std::vector<Step> many;
  if (stretch.size() > kShort) many.resize(stretch.size() + 1);
  Step* steps = many.empty() ? few.data() : many.data();
  for (size_t i = 0; i <= stretch.size(); ++i) steps[i].begin = kNone;
  steps[0].score = 0;
  find_path(stretch, steps, parsed);

  // Follows the best path from the end to the beginning, then reverses the pieces.
  const size_t first = out.size();
  for (auto end = static_cast<uint32_t>(stretch.size()); end > 0;) {
    const Step& step = steps[end];
    if (step.id == unk_id_ && out.size() > first && out.back().id == unk_id_) {
      out.back().begin = step.begin;
    } else {
      out.push_back({step.id, step.begin, end});
    }
    end = step.begin;
  }
  std::reverse(out.begin() + static_cast<ptrdiff_t>(first), out.end());
  const auto is_unknown = [&](const Piece& piece) {
    return piece.id == unk_id_ || piece.id >= listed_;
  };
  if (std::none_of(out.begin() + static_cast<ptrdiff_t>(first), out.end(), is_unknown)) return;
  const std::vector<Piece> pieces(out.begin() + static_cast<ptrdiff_t>(first), out.end());
  out.resize(first);
  for (const Piece& piece : pieces) {
    if (piece.id == unk_id_) {
      unknown(stretch, piece, out, parsed);
    } else {
      out.push_back({piece.id < listed_ ? piece.id : unk_id_, piece.begin, piece.end});
    }
  }
}

// Appends the token or the byte tokens of an unknown piece. Adjacent unknown characters form one
// piece, whose text may be a token of the vocabulary.
void UnigramModel::unknown(std::string_view stretch, Piece piece, std::vector<Piece>& out,
                           bool parsed) const {
  const std::string_view text = stretch.substr(piece.begin, piece.end - piece.begin);
  const int32_t id = pieces_.trie().find(text);
  if (id != PieceTrie::absent && !special_.hides(id, parsed)) {
    piece.id = id < listed_ ? id : unk_id_;
  } else if (byte_fallback_ && has_byte_pieces(byte_ids_, text)) {
    for (const char byte : text)
      out.push_back({byte_ids_[static_cast<uint8_t>(byte)], piece.begin, piece.end});
    return;
  }
  out.push_back(piece);
}

}  // namespace fovea::text
