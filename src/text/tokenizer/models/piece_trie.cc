#include "tokenizer/models/piece_trie.h"

#include <bit>

#include "base/error.h"

namespace fovea::text {

PieceTrie::PieceTrie(const std::vector<std::string>& texts) : ids_{absent} {
  uint64_t bytes = 0;
  for (const std::string& text : texts) bytes += text.size();
  if (bytes >= kMostNodes) {
    fail(ErrorKind::BadFile, "vocabulary: contains {} bytes of text; expected fewer than {}", bytes,
         kMostNodes);
  }
  // Pieces share prefixes, so most vocabularies need far fewer edges than bytes. The edges are
  // first inserted into a table that is always large enough, then copied to one of the right size.
  edges_.assign(std::bit_ceil(2 * bytes + 2), kFree);
  mask_ = edges_.size() - 1;
  shift_ = 64 - std::countr_zero(edges_.size());
  for (size_t id = 0; id < texts.size(); ++id) insert(texts[id], static_cast<int32_t>(id));
  const std::vector<uint64_t> large = std::move(edges_);
  edges_.assign(std::bit_ceil(2 * ids_.size() + 2), kFree);
  mask_ = edges_.size() - 1;
  shift_ = 64 - std::countr_zero(edges_.size());
  for (const uint64_t edge : large) {
    if (edge == kFree) continue;
    size_t at = slot_of(edge >> kNodeBits);
    while (edges_[at] != kFree) at = (at + 1) & mask_;
    edges_[at] = edge;
  }
}

uint32_t PieceTrie::walk(uint32_t node, std::string_view text) const {
  for (size_t i = 0; i < text.size() && node != nowhere; ++i) node = step(node, text[i]);
  return node;
}

void PieceTrie::insert(std::string_view text, int32_t id) {
  uint32_t node = root;
  for (const char byte : text) {
    const uint64_t key = key_of(node, byte);
    size_t at = slot_of(key);
    while (edges_[at] != kFree && edges_[at] >> kNodeBits != key) at = (at + 1) & mask_;
    if (edges_[at] == kFree) {
      edges_[at] = key << kNodeBits | ids_.size();
      ids_.push_back(absent);
    }
    node = static_cast<uint32_t>(edges_[at] & (kMostNodes - 1));
  }
  if (node != root) ids_[node] = id;
}

}  // namespace fovea::text
