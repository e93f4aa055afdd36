#include "text/wordpiece.h"

#include "text/word_level.h"

namespace fovea {
namespace {

// Counted by the bytes that start one.
bool more_characters_than(std::string_view text, size_t limit) {
  if (text.size() <= limit) return false;
  size_t count = 0;
  for (const char byte : text) count += (static_cast<uint8_t>(byte) & 0xC0u) != 0x80u;
  return count > limit;
}

}  // namespace

WordPieceModel::WordPieceModel(WordPieceOptions options)
    : trie_(options.texts),
      continuing_(trie_.walk(PieceTrie::root, options.continuing_subword_prefix)),
      unk_id_(trie_.find(options.unk)),
      unk_(std::move(options.unk)),
      max_characters_(options.max_input_chars_per_word) {}

void WordPieceModel::unknown(std::string_view stretch, std::vector<Piece>& out) const {
  if (unk_id_ == PieceTrie::absent) fail_without_unknown(stretch, unk_);
  out.push_back({unk_id_, 0, static_cast<uint32_t>(stretch.size())});
}

void WordPieceModel::encode(std::string_view stretch, std::vector<Piece>& out) const {
  if (more_characters_than(stretch, max_characters_)) return unknown(stretch, out);
  const size_t before = out.size();
  for (size_t start = 0; start < stretch.size();) {
    Piece best = {PieceTrie::absent, static_cast<uint32_t>(start), 0};
    uint32_t node = start == 0 ? PieceTrie::root : continuing_;
    for (size_t end = start; end < stretch.size() && node != PieceTrie::nowhere; ++end) {
      node = trie_.step(node, stretch[end]);
      if (node == PieceTrie::nowhere || trie_.id_at(node) == PieceTrie::absent) continue;
      best.id = trie_.id_at(node);
      best.end = static_cast<uint32_t>(end + 1);
    }
    if (best.id == PieceTrie::absent) {
      out.resize(before);
      return unknown(stretch, out);
    }
    out.push_back(best);
    start = best.end;
  }
}

}  // namespace fovea
