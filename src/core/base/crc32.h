#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace fovea {

// Polynomials with their bits reversed: of zip and PNG, and of Castagnoli (CRC-32C).
constexpr uint32_t kZipPolynomial = 0xedb88320u, kCastagnoliPolynomial = 0x82f63b78u;

// Returns the cyclic redundancy check of the bytes, which follow those with the check `before`.
template <uint32_t kPolynomial>
uint32_t crc32(std::string_view bytes, uint32_t before = 0) {
  static const std::array<uint32_t, 256> table = [] {
    std::array<uint32_t, 256> made{};
    for (uint32_t i = 0; i < made.size(); ++i) {
      uint32_t crc = i;
      for (int bit = 0; bit < 8; ++bit) crc = crc & 1 ? (crc >> 1) ^ kPolynomial : crc >> 1;
      made[i] = crc;
    }
    return made;
  }();
  uint32_t crc = ~before;
  for (const char c : bytes) crc = table[(crc ^ static_cast<uint8_t>(c)) & 255] ^ (crc >> 8);
  return ~crc;
}

}  // namespace fovea
