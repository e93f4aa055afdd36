#include "tokenizer/models/piece_table.h"

#include <bit>

#include "base/hash.h"

namespace fovea::text {

PieceTable::PieceTable(const std::vector<std::string>& texts)
    : slots_(std::bit_ceil(2 * texts.size() + 2)) {
  size_t bytes = 0;
  for (const std::string& text : texts) bytes += text.size();
  bytes_.reserve(bytes);
  begins_.reserve(texts.size() + 1);
  for (const std::string& text : texts) {
    begins_.push_back(bytes_.size());
    bytes_ += text;
  }
  begins_.push_back(bytes_.size());
  for (size_t id = 0; id < texts.size(); ++id) {
    if (texts[id].empty()) continue;
    const uint64_t hash = hash_bytes(texts[id]);
    Slot& slot = slots_[slot_of(texts[id], hash)];
    size_ += slot.id == absent;
    slot = {static_cast<uint32_t>(hash >> 32), static_cast<int32_t>(id)};
  }
}

int32_t PieceTable::find(std::string_view text) const {
  return slots_.empty() ? absent : slots_[slot_of(text, hash_bytes(text))].id;
}

size_t PieceTable::slot_of(std::string_view text, uint64_t hash) const {
  const size_t mask = slots_.size() - 1;
  const auto tag = static_cast<uint32_t>(hash >> 32);
  for (size_t at = hash & mask;; at = (at + 1) & mask) {
    const Slot& slot = slots_[at];
    if (slot.id == absent || (slot.tag == tag && text_of(slot.id) == text)) return at;
  }
}

std::string_view PieceTable::text_of(int32_t id) const {
  const uint64_t begin = begins_[static_cast<size_t>(id)];
  return std::string_view(bytes_).substr(begin, begins_[static_cast<size_t>(id) + 1] - begin);
}

}  // namespace fovea::text
