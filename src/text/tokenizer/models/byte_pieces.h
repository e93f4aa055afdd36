#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <string_view>

#include <fmt/format.h>

namespace fovea::text {

// Returns the ids of "<0x00>" to "<0xFF>", which represent the bytes of an unknown character; -1
// for those that are missing from the vocabulary. `find` returns the id of a string, or -1.
template <class Find>
std::array<int32_t, 256> byte_piece_ids(Find&& find) {
  std::array<int32_t, 256> ids;
  for (size_t byte = 0; byte < ids.size(); ++byte)
    ids[byte] = find(fmt::format("<0x{:02X}>", byte));
  return ids;
}

inline bool has_byte_pieces(const std::array<int32_t, 256>& ids, std::string_view text) {
  return std::all_of(text.begin(), text.end(),
                     [&](char byte) { return ids[static_cast<uint8_t>(byte)] >= 0; });
}

}  // namespace fovea::text
