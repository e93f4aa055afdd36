#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>
#include <vector>

#include "tokenizer/models/token_model.h"

namespace fovea::text {

// A cache of the ids of short stretches of text, for any model and one thread. It takes 2 MiB,
// allocated at the first use. A newer stretch replaces an older one in the same entry.
class PieceCache {
 public:
  // Appends the ids of the pieces of model.encode(stretch, pieces, parsed). `owner` is a unique
  // number of the model, not 0. The cache is cleared if `owner` or `parsed` differs from the last
  // call's.
  template <class Model>
  void ids(uint64_t owner, const Model& model, std::string_view stretch, std::vector<int32_t>& out,
           bool parsed = false) {
    if (owner != owner_ || parsed != parsed_) forget(owner, parsed);
    if (stretch.empty() || stretch.size() > kMostBytes) return encode(model, stretch, out);
    const Key key = key_of(stretch);
    Entry& entry = entries_[slot_of(key, stretch.size())];
    if (entry.bytes != stretch.size() || !same(entry.key, key)) {
      const size_t before = out.size();
      encode(model, stretch, out);
      if (out.size() - before <= kMostIds) remember(entry, key, stretch.size(), out, before);
    } else if (entry.count == 1) {
      out.push_back(entry.ids[0]);
    } else {
      out.insert(out.end(), entry.ids.begin(), entry.ids.begin() + entry.count);
    }
  }

 private:
  // Longer stretches are not cached; nearly all words of natural text are shorter.
  static constexpr size_t kMostBytes = 24;
  static constexpr size_t kMostIds = 9;  // an entry then fits into one cache line
  static constexpr size_t kEntries = size_t{1} << 15;

  using Key = std::array<uint64_t, 3>;
  struct alignas(64) Entry {
    Key key;
    std::array<int32_t, kMostIds> ids;
    uint8_t bytes;  // bytes of the stretch; 0: empty entry
    uint8_t count;  // number of ids
  };
  static_assert(sizeof(Entry) == 64);

  template <class Word>
  static uint64_t load(const char* data) {
    Word word;
    std::memcpy(&word, data, sizeof(word));
    return word;
  }

  // Returns a key that contains all bytes of the text: loads overlap if the length is not a
  // multiple of their size. Texts with equal keys and lengths are equal.
  static Key key_of(std::string_view text) {
    const char* data = text.data();
    const size_t bytes = text.size();
    if (bytes > 16)
      return {load<uint64_t>(data), load<uint64_t>(data + 8), load<uint64_t>(data + bytes - 8)};
    if (bytes >= 8) return {load<uint64_t>(data), load<uint64_t>(data + bytes - 8), 0};
    if (bytes >= 4) return {load<uint32_t>(data) << 32 | load<uint32_t>(data + bytes - 4), 0, 0};
    if (bytes >= 2) return {load<uint16_t>(data) << 16 | load<uint16_t>(data + bytes - 2), 0, 0};
    return {load<uint8_t>(data), 0, 0};
  }

  static bool same(const Key& one, const Key& other) {  // inlined, unlike ==
    return one[0] == other[0] && one[1] == other[1] && one[2] == other[2];
  }

  // Multiplies by large odd constants; the upper bits of a product are mixed best.
  static size_t slot_of(const Key& key, size_t bytes) {
    const uint64_t mixed = key[0] * 0x9E3779B97F4A7C15u ^
                           std::rotl(key[1] * 0xC2B2AE3D27D4EB4Fu, 23) ^
                           std::rotl(key[2] * 0x165667B19E3779F9u, 41) ^ bytes << 56;
    return (mixed ^ mixed >> 32) * 0x9FB21C651E98DF25u >> (64 - std::bit_width(kEntries - 1));
  }

  template <class Model>
  void encode(const Model& model, std::string_view stretch, std::vector<int32_t>& out) {
    pieces_.clear();
    model.encode(stretch, pieces_, parsed_);
    for (const Piece& piece : pieces_) out.push_back(piece.id);
  }

  static void remember(Entry& entry, const Key& key, size_t bytes, const std::vector<int32_t>& ids,
                       size_t first) {
    entry.key = key;
    entry.bytes = static_cast<uint8_t>(bytes);
    entry.count = static_cast<uint8_t>(ids.size() - first);
    std::copy(ids.begin() + static_cast<std::ptrdiff_t>(first), ids.end(), entry.ids.begin());
  }

  void forget(uint64_t owner, bool parsed) {
    entries_.assign(kEntries, Entry{});
    owner_ = owner;
    parsed_ = parsed;
  }

  uint64_t owner_ = 0;
  bool parsed_ = false;
  std::vector<Entry> entries_;
  std::vector<Piece> pieces_;
};

}  // namespace fovea::text
