#include "tokenizer/models/bpe.h"

#include <algorithm>
#include <functional>
#include <queue>

#include "base/error.h"
#include "fovea/core/excerpt.h"
#include "tokenizer/models/byte_pieces.h"
#include "unicode/utf8.h"

namespace fovea::text {
namespace {

// If a stretch has at most kFew symbols, a linear search finds the pair of the lowest rank.
constexpr size_t kFew = 48;

}  // namespace

BpeModel::BpeModel(BpeOptions options)
    : table_(options.texts),
      pairs_(options.merges.size()),
      byte_ids_(byte_piece_ids([&](std::string_view text) { return table_.find(text); })),
      prefix_(std::move(options.continuing_subword_prefix)),
      suffix_(std::move(options.end_of_word_suffix)),
      unk_id_(options.unk.empty() ? PieceTable::absent : table_.find(options.unk)),
      bytes_(options.bytes),
      fuse_unk_(options.fuse_unk),
      byte_fallback_(options.byte_fallback),
      ignore_merges_(options.ignore_merges),
      special_(std::move(options.special)) {
  for (size_t byte = 0; byte < symbols_.size(); ++byte) {
    const char text = static_cast<char>(byte);
    symbols_[byte] = table_.find({&text, 1});
  }
  read_merges(options.merges, options.name);
}

void BpeModel::read_merges(const std::vector<std::pair<std::string, std::string>>& merges,
                           const std::string& name) {
  const auto id_of = [&](const std::string& text, size_t rank) {
    const int32_t id = table_.find(text);
    if (id == PieceTable::absent) {
      fail(ErrorKind::BadFile,
           "{}: \"{}\" is not in the vocabulary (model.merges[{}]); expected one of its tokens",
           name, excerpt(utf8::repaired(text)), rank);
    }
    return id;
  };
  std::string merged;
  for (size_t rank = 0; rank < merges.size(); ++rank) {
    const auto& [left, right] = merges[rank];
    if (right.size() < prefix_.size()) {
      fail(ErrorKind::BadFile,
           "{}: \"{}\" lacks the prefix \"{}\" (model.merges[{}]); expected the prefix", name,
           excerpt(utf8::repaired(right)), excerpt(prefix_), rank);
    }
    merged.assign(left).append(right, prefix_.size());
    pairs_.set(id_of(left, rank), id_of(right, rank),
               {static_cast<uint32_t>(rank), id_of(merged, rank)});
  }
}

int32_t BpeModel::symbol(std::string_view character, bool first, bool last) const {
  const bool prefixed = !first && !prefix_.empty(), suffixed = last && !suffix_.empty();
  if (!prefixed && !suffixed) {
    return character.size() == 1 ? symbols_[static_cast<uint8_t>(character[0])]
                                 : table_.find(character);
  }
  std::string text;
  if (prefixed) text += prefix_;
  text += character;
  if (suffixed) text += suffix_;
  return table_.find(text);
}

// Positions are sums of the symbols' lengths, as in Hugging Face's library: they do not count
// omitted characters.
struct BpeModel::Splitter {
  std::vector<Piece>& out;
  uint32_t size;  // size of the stretch
  uint32_t end = 0;
  // The pending run of unknown characters: their id, and their total length in `end`.
  Piece unknown = {};
  bool waiting = false;

  void push(int32_t id, uint32_t bytes) {
    const uint32_t begin = std::min(end, size);
    end += bytes;
    out.push_back({id, begin, std::min(end, size)});
  }
  void flush() {
    if (waiting) push(unknown.id, unknown.end);
    waiting = false;
  }
};

// The fast path: appends a symbol for each byte. Returns false and leaves `out` unchanged if
// symbols are characters or have a prefix or suffix, or if a byte has no token.
bool BpeModel::split_bytes(std::string_view stretch, std::vector<Piece>& out) const {
  if (!bytes_ || !prefix_.empty() || !suffix_.empty()) return false;
  const size_t first = out.size();
  out.resize(first + stretch.size());
  Piece* piece = out.data() + first;
  for (uint32_t i = 0; i < stretch.size(); ++i) {
    const int32_t id = symbols_[static_cast<uint8_t>(stretch[i])];
    piece[i] = {id, i, i + 1};
    if (id == PieceTable::absent) {
      out.resize(first);
      return false;
    }
  }
  return true;
}

void BpeModel::split(std::string_view stretch, std::vector<Piece>& out) const {
  Splitter splitter{out, static_cast<uint32_t>(stretch.size())};
  for (size_t begin = 0; begin < stretch.size();) {
    const uint32_t length = bytes_ ? 1 : utf8::first(stretch.substr(begin)).bytes;
    const std::string_view character = stretch.substr(begin, length);
    const bool first = begin == 0;
    begin += length;
    const int32_t id = symbol(character, first, begin == stretch.size());
    if (id != PieceTable::absent) {
      splitter.flush();
      splitter.push(id, length);
    } else if (byte_fallback_ && has_byte_pieces(byte_ids_, character)) {
      for (const char byte : character) splitter.push(byte_ids_[static_cast<uint8_t>(byte)], 1);
    } else if (unk_id_ != PieceTable::absent) {
      if (!fuse_unk_) splitter.flush();
      splitter.unknown = {unk_id_, 0, splitter.waiting ? splitter.unknown.end + length : length};
      splitter.waiting = true;
    }
  }
  splitter.flush();
}

void BpeModel::encode(std::string_view stretch, std::vector<Piece>& out, bool parsed) const {
  if (stretch.empty()) return;
  if (ignore_merges_) {
    const int32_t id = table_.find(stretch);
    if (id != PieceTable::absent && !special_.hides(id, parsed))
      return out.push_back({id, 0, static_cast<uint32_t>(stretch.size())});
  }
  const size_t first = out.size();
  if (!split_bytes(stretch, out)) split(stretch, out);
  const size_t count = out.size() - first;
  if (count > kFew) return merge_many(out, first);
  out.resize(first + merge_few(out.data() + first, count));
}

size_t BpeModel::merge_few(Piece* pieces, size_t count) const {
  std::array<PairMerge, kFew> merges;  // merges[i] joins piece i and the next one
  for (size_t i = 0; i + 1 < count; ++i) merges[i] = pairs_.find(pieces[i].id, pieces[i + 1].id);
  while (count > 1) {
    size_t best = 0;
    for (size_t i = 1; i + 1 < count; ++i) {
      if (merges[i].rank < merges[best].rank) best = i;
    }
    if (merges[best].rank == PairMerge::none) break;
    pieces[best].id = merges[best].id;
    pieces[best].end = pieces[best + 1].end;
    --count;
    std::copy(pieces + best + 2, pieces + count + 1, pieces + best + 1);
    std::copy(&merges[best] + 1, merges.data() + count, &merges[best]);
    if (best > 0) merges[best - 1] = pairs_.find(pieces[best - 1].id, pieces[best].id);
    if (best + 1 < count) merges[best] = pairs_.find(pieces[best].id, pieces[best + 1].id);
  }
  return count;
}

// Keeps a doubly linked list of the remaining pieces, and a queue of merges by rank and position;
// an entry is stale if the pair at its position has changed.
void BpeModel::merge_many(std::vector<Piece>& pieces, size_t first) const {
  constexpr uint32_t kEnd = UINT32_MAX;
  constexpr int32_t kGone = -1;
  const auto count = static_cast<uint32_t>(pieces.size() - first);
  Piece* piece = pieces.data() + first;
  const auto possible = [](uint64_t key) { return key >> 32 != PairMerge::none; };
  const auto entry_of = [&](uint32_t at, uint32_t next) {  // rank, then position
    return uint64_t{pairs_.find(piece[at].id, piece[next].id).rank} << 32 | at;
  };
  std::vector<uint64_t> entries;
  for (uint32_t at = 0; at + 1 < count; ++at) {
    if (const uint64_t key = entry_of(at, at + 1); possible(key)) entries.push_back(key);
  }
  if (entries.empty()) return;
  struct Neighbours {
    uint32_t previous, next;
  };
  std::vector<Neighbours> links(count);
  for (uint32_t at = 0; at < count; ++at)
    links[at] = {at == 0 ? kEnd : at - 1, at + 1 < count ? at + 1 : kEnd};
  const auto entry = [&](uint32_t at) { return entry_of(at, links[at].next); };
  std::priority_queue queue(std::greater<>(), std::move(entries));
  while (!queue.empty()) {
    const uint64_t top = queue.top();
    queue.pop();
    const auto at = static_cast<uint32_t>(top);
    if (piece[at].id == kGone || links[at].next == kEnd || entry(at) != top) continue;
    const uint32_t right = links[at].next;
    piece[at].id = pairs_.find(piece[at].id, piece[right].id).id;
    piece[at].end = piece[right].end;
    piece[right].id = kGone;
    links[at].next = links[right].next;
    if (links[at].next != kEnd) {
      links[links[at].next].previous = at;
      if (possible(entry(at))) queue.push(entry(at));
    }
    const uint32_t left = links[at].previous;
    if (left != kEnd && possible(entry(left))) queue.push(entry(left));
  }
  pieces.erase(std::remove_if(pieces.begin() + static_cast<ptrdiff_t>(first), pieces.end(),
                              [](const Piece& one) { return one.id == kGone; }),
               pieces.end());
}

}  // namespace fovea::text
