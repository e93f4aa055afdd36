#pragma once

// The functions of bit_planes_x86.h in plain C++, for all CPUs: they run while a model is opened.

#include <cstring>

#include "kernels/layout/lines.h"

namespace fovea {

inline void interleave(const uint32_t* words, int64_t stride, int64_t count, uint8_t* to) {
  for (int64_t line = 0; line < count; ++line, to += kLineBytes) {
    for (int64_t lane = 0; lane < kPanelOutputs; ++lane)
      std::memcpy(to + 4 * lane, words + lane * stride + line, 4);
  }
}

inline uint32_t quarters(const uint8_t* u, int shift) {
  uint32_t words[4], bits = 0;
  std::memcpy(words, u, sizeof words);
  for (int f = 0; f < 4; ++f) bits |= (words[f] >> shift & 0x03030303u) << 2 * f;
  return bits;
}

inline uint32_t eighths(const uint8_t* u, int shift) {
  uint32_t words[8], bits = 0;
  std::memcpy(words, u, sizeof words);
  for (int t = 0; t < 8; ++t) bits |= (words[t] >> shift & 0x01010101u) << t;
  return bits;
}

inline void join_nibbles(const uint8_t* numbers, uint32_t* to) {
  uint8_t bytes[16];
  for (int i = 0; i < 16; ++i)
    bytes[i] = static_cast<uint8_t>((numbers[i] & 15) | numbers[16 + i] << 4);
  std::memcpy(to, bytes, sizeof bytes);
}

inline void put_columns(const uint8_t* bytes, int64_t count, uint8_t* to) {
  for (int64_t i = 0; i < count; ++i, to += 16)
    for (int64_t lane = 0; lane < 16; ++lane) to[lane] = bytes[16 * lane + i];
}

}  // namespace fovea
