#include "tokenizer/models/wordpiece.h"

#include <array>

#include "tokenizer/models/word_level.h"

namespace fovea::text {
namespace {

// Returns whether a text has more than `limit` characters; counts the bytes that start a character.
bool more_characters_than(std::string_view text, size_t limit) {
  if (text.size() <= limit) return false;
  size_t count = 0;
  for (const char byte : text) count += (static_cast<uint8_t>(byte) & 0xC0u) != 0x80u;
  return count > limit;
}

// Returns the continuation pieces by id, without the prefix and reversed; empty for other pieces.
std::vector<std::string> reversed_continuations(const std::vector<std::string>& texts,
                                                std::string_view prefix) {
  std::vector<std::string> reversed(texts.size());
  for (size_t id = 0; id < texts.size(); ++id) {
    const std::string& text = texts[id];
    if (text.starts_with(prefix))
      reversed[id].assign(text.rbegin(), text.rend() - static_cast<std::ptrdiff_t>(prefix.size()));
  }
  return reversed;
}

}  // namespace

WordPieceModel::WordPieceModel(WordPieceOptions options)
    : trie_(options.texts),
      continuing_(reversed_continuations(options.texts, options.continuing_subword_prefix)),
      unk_id_(trie_.find(options.unk)),
      unk_(std::move(options.unk)),
      max_characters_(options.max_input_chars_per_word),
      special_(std::move(options.special)) {}

void WordPieceModel::unknown(std::string_view stretch, std::vector<Piece>& out) const {
  if (unk_id_ == PieceTrie::absent) fail_without_unknown(stretch, unk_);
  out.push_back({unk_id_, 0, static_cast<uint32_t>(stretch.size())});
}

Piece WordPieceModel::first_piece(std::string_view stretch, bool parsed) const {
  Piece longest = {PieceTrie::absent, 0, 0};
  uint32_t node = PieceTrie::root;
  for (uint32_t end = 0; end < stretch.size();) {
    node = trie_.step(node, stretch[end++]);
    if (node == PieceTrie::nowhere) break;
    const int32_t id = trie_.id_at(node);
    if (id != PieceTrie::absent && !special_.hides(id, parsed)) longest = {id, 0, end};
  }
  return longest;
}

// In the reversed text, the longest continuation that begins at a position is the longest piece
// that ends there, so one pass finds all of them.
void WordPieceModel::encode(std::string_view stretch, std::vector<Piece>& out, bool parsed) const {
  if (stretch.empty()) return;
  if (more_characters_than(stretch, max_characters_)) return unknown(stretch, out);
  const Piece first = first_piece(stretch, parsed);
  if (first.id == PieceTrie::absent) return unknown(stretch, out);
  constexpr size_t kShort = 128;  // bytes; enough for nearly all words; takes 512 bytes of stack
  std::array<uint32_t, kShort> few;
  std::vector<uint32_t> many;
  if (stretch.size() > kShort) many.resize(stretch.size());
  uint32_t* longest = many.empty() ? few.data() : many.data();
  uint32_t state = PieceAutomaton::root;
  for (size_t at = stretch.size(); at-- > first.end;) {
    state = continuing_.step(state, stretch[at]);
    longest[at] = continuing_.longest(state);
    while (longest[at] != PieceAutomaton::root &&
           special_.hides(continuing_.id_at(longest[at]), parsed))
      longest[at] = continuing_.shorter(longest[at]);
  }
  const size_t before = out.size();
  out.push_back(first);
  for (uint32_t start = first.end; start < stretch.size();) {
    if (longest[start] == PieceAutomaton::root) {
      out.resize(before);
      return unknown(stretch, out);
    }
    const int32_t id = continuing_.id_at(longest[start]);
    const uint32_t end = start + continuing_.length_of(id);
    out.push_back({id, start, end});
    start = end;
  }
}

}  // namespace fovea::text
